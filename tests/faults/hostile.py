"""Index folders as an attacker would make them, with valid checksums: `run(kind, budget)` tries many and counts.

Each case must end in an IndexesError or in results of the right shape. Cases run in a child process that reports the
current case, so a crash is attributed to its case and a new process tries the next ones.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from indexes.collection import Collection
from indexes.interface import Document, Filter, IndexesError
from indexes.vectors.faiss_files import load_faiss
from indexes.vectors.kinds import GENERATORS
from tests.faults.hostile_graphs import damaged_graphs
from tests.golden.make_index import documents

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "index-v3"
DIM = 8  # dimension of the golden index
Case = tuple[str, Callable[[], None]]  # name and action; the action raises IndexesError or nothing
RAW = {
    "@nan@": "NaN",
    "@huge@": "1e999",
    "@deep@": "[" * 3000 + "]" * 3000,
    "@long@": "9" * 5000,
    "@half@": '"\\ud800"',
}
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2.5, 1 << 31, 1 << 63, 10**30, "", "x", "..", "../../x", "/dev/zero", "a\0b", "\n\x1b[2J",
    "é" * 9000, [], {}, [[]], {"a": {}}, [None] * 3, *RAW,
)  # fmt: skip
NAMES = (
    "../../../etc/passwd", "/dev/zero", "segments/../../x", "segments/000001/../../manifest.json", "segments//ids.txt",
    "segments/000001/x", "lock", "manifest.json", "text/000002/../x", "deleted/000009.i64\0", "graph\\000002.faiss", "",
    "segments/000009/ids.txt", "encoder/a/config.json", "encoder/../a", "quarantine/000009.jsonl\n",
    "text/000002/a.postings",
)  # fmt: skip
WORDS = (0, 1, -1, -2, 7, 40, 1 << 20, (1 << 31) - 1, 1 << 32, (1 << 62), -(1 << 62))


def seal(folder: Path, values: dict[str, Any]) -> None:
    """Write a manifest with a valid checksum; texts in RAW become values that JSON cannot otherwise express."""
    body = json.dumps({k: v for k, v in values.items() if k != "xxh3"}, indent=2)[1:]
    for name, raw in RAW.items():
        body = body.replace(f'"{name}"', raw)
    write_body(folder, body.encode())


def write_body(folder: Path, body: bytes) -> None:
    head = b'{"xxh3": "%s",' % xxhash.xxh3_128_hexdigest(body).encode()
    (folder / "manifest.json").write_bytes(head + body)


def replace(folder: Path, name: str, data: bytes) -> None:
    """Replace a file of an index and its record; postings files are named by their checksum."""
    values = json.loads((folder / "manifest.json").read_bytes())
    record = {"bytes": len(data), "xxh3": xxhash.xxh3_128_hexdigest(data)}
    (folder / name).unlink()
    del values["files"][name]
    if name.endswith(".postings"):
        name = f"{name.rpartition('/')[0]}/{record['xxh3']}.postings"
    (folder / name).write_bytes(data)
    values["files"][name] = record
    seal(folder, values)


def nodes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to everything inside a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from nodes(inner, (*path, key))


def changed(values: Any, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    copy = json.loads(json.dumps(values))
    inner = functools.reduce(lambda at, key: at[key], path[:-1], copy)
    change(inner, path[-1])
    return copy


def damaged_manifests(folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield manifests with every value removed and replaced, every file renamed, keys added and repeated."""
    sound = json.loads((folder / "manifest.json").read_bytes())
    del sound["xxh3"]
    for path in nodes(sound):
        yield (
            f"without {path}",
            functools.partial(seal, folder, changed(sound, path, lambda at, key: at.pop(key))),
        )
        for value in VALUES:

            def put(at: Any, key: Any, value: Any = value) -> None:
                at[key] = value

            yield f"{path} = {str(value)[:30]!r}", functools.partial(seal, folder, changed(sound, path, put))
    for name, other in itertools.product(sound["files"], NAMES):

        def rename(at: Any, key: Any, other: str = other) -> None:
            at[other] = at.pop(key)

        yield f"{name} as {other!r}", functools.partial(seal, folder, changed(sound, ("files", name), rename))
    for name, place in itertools.product(("../../x", "000009", "00000a", "", "/x", "a\0"), (0, 1)):
        other = json.loads(json.dumps(sound))
        other["segments"][place]["name"] = name
        yield f"segment {name!r}", functools.partial(seal, folder, other)
    body = json.dumps(sound)[1:]
    for text in (
        '"documents": 7,',
        '"format": 2,',
        '"xxh3": "",',
        '"__class__": 1,',
        '"": 1,',
        "\xff",
        "[",
        "}",
    ):
        yield f"begins {text}", functools.partial(write_body, folder, (text + body).encode("latin-1"))


def damaged_contents(folder: Path, rng: random.Random) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield documents, offsets, ids, removed rows, vectors and postings that contradict each other, endlessly."""
    files = json.loads((folder / "manifest.json").read_bytes())["files"]
    names = [n for n in files if not n.startswith(("quarantine/", "graph/"))]
    content = {name: (folder / name).read_bytes() for name in names}
    for number in itertools.count():
        name = names[number % len(names)]
        data, suffix = content[name], name.rpartition(".")[2]
        if suffix == "jsonl":
            what, changes = _other_documents(folder, name, content, rng)
        elif suffix == "txt":
            what, changes = "ids", {name: _other_ids(data, rng)}
        else:
            what, changes = "words", {name: _other_words(data, {"i64": 8, "f32": 4}.get(suffix, 1), rng)}

        def write(changes: dict[str, bytes] = changes) -> None:
            for changed_name, changed_data in changes.items():
                replace(folder, changed_name, changed_data)

        yield f"{what} in {name}", write


def _other_documents(
    folder: Path, name: str, content: dict[str, bytes], rng: random.Random
) -> tuple[str, dict[str, bytes]]:
    """Change a line and adjust the offsets."""
    lines = content[name].splitlines(keepends=True)
    place, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    values = json.loads(lines[place])
    way = rng.randrange(8)
    if way < 4:
        values[rng.choice(list(values))] = rng.choice(VALUES[: -len(RAW)])
    elif way == 4:
        values.pop(rng.choice(list(values)))
    elif way == 5:
        values["extra"] = 1
    lines[place] = json.dumps(values).encode() + b"\n"
    if way == 6:
        lines[place], lines[other] = lines[other], lines[place]
    if way == 7:
        deep = b'{"id":%s,"text":"","title":"","metadata":{"a":%s}}\n'
        nested = deep % (json.dumps(values["id"]).encode(), b"[" * 900 + b"]" * 900)
        lines[place] = rng.choice((b"[]\n", b"null\n", b"\xff\n", b"{}\n", nested))
    ends = np.cumsum([0, *map(len, lines)]).astype("<i8").tobytes()
    return f"way {way}", {name: b"".join(lines), name.replace("documents.jsonl", "offsets.i64"): ends}


def _other_ids(data: bytes, rng: random.Random) -> bytes:
    ids = data.split(b"\n")
    bad = (
        b"",
        b" ",
        b"a b",
        b"\xff",
        b"\x1b[2J",
        "\u202e".encode(),
        b"\r",
        rng.choice(ids),
        "\u2028".encode(),
        b"x" * 9999,
    )
    ids[rng.randrange(len(ids))] = rng.choice(bad)
    return rng.choice(
        (b"\n".join(ids), b"\n".join(ids) + b"\n", b"\n".join(ids[:-1]), data.replace(b"\n", b"\r\n"), b"")
    )


def _other_words(data: bytes, size: int, rng: random.Random) -> bytes:
    """Overwrite a few words, swap two, or truncate."""
    changed_data = bytearray(data)
    way = rng.randrange(8)
    if way == 0:
        return data[: rng.randrange(len(data))]
    if way == 1:
        return data + bytes(rng.choice((1, 4, 8)))
    size = rng.choice((2, 4, 8)) if size == 1 else size
    for _ in range(rng.choice((1, 1, 1, 4))):
        at = rng.randrange(len(data) // size) * size
        other = rng.randrange(len(data) // size) * size
        if way < 4:
            changed_data[at : at + size] = data[other : other + size]
        elif size == 4 and way < 6:
            value = np.float32(rng.choice((np.nan, np.inf, -np.inf, 1e30, 3.0, 0.0, 1e-40)))
            changed_data[at : at + size] = value.tobytes()
        else:
            word = rng.choice((*WORDS, rng.getrandbits(62))) & ((1 << 8 * size) - 1)
            changed_data[at : at + size] = word.to_bytes(size, "little")
    return bytes(changed_data)


def use(folder: Path) -> list[Document]:
    """Open an index, read everything in it and return its documents.

    Raises IndexesError, and AssertionError if a result has the wrong shape.
    """
    collection = Collection.open(folder)
    queries = np.eye(3, DIM, dtype=np.float32)
    texts = ["banel deras", "Boxkämpfer jagen", ""]
    live = len(collection.rows)
    for mode, where in itertools.product(("bm25", "dense", "hybrid"), (None, Filter.parse(["group=1"]))):
        for k in (1, 50):
            hits = collection.hybrid.search(texts, k, embed=lambda _: queries, mode=mode, where=where).hits  # type: ignore[arg-type] # a mode's name
            assert len(hits) == len(texts)
            for answer in hits:
                assert len(answer.ids) == len(answer.scores) <= min(k, live)
                assert len(set(answer.ids)) == len(answer.ids)
                assert np.isfinite(answer.scores).all()
                for id_ in answer.ids:
                    assert collection.document(id_).id == id_
    return [collection.documents[row] for row in range(collection.documents.rows)]


def manifest_cases(folder: Path) -> Iterator[Case]:
    """Yield manifests of the golden index; those that still open must hold the same documents."""
    shutil.copytree(GOLDEN, folder, dirs_exist_ok=True)
    for what, damage in damaged_manifests(folder):

        def attempt(damage: Callable[[], None] = damage) -> None:
            damage()
            assert use(folder) == documents()

        yield what, attempt


def content_cases(folder: Path, seed: int) -> Iterator[Case]:
    """Yield contents of the golden index; each begins with a sound copy of it."""
    shutil.copytree(GOLDEN, folder, dirs_exist_ok=True)
    for what, damage in damaged_contents(folder, random.Random(seed)):

        def attempt(damage: Callable[[], None] = damage) -> None:
            shutil.rmtree(folder)
            shutil.copytree(GOLDEN, folder)
            damage()
            use(folder)

        yield what, attempt


def graph_cases(folder: Path, seed: int) -> Iterator[Case]:
    """Yield files of the three approximate kinds, each loaded, searched with and without a mask, and extended."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((1500, 16), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    known, path = 1400, folder / "graph"
    sound = {}
    for kind, generator_class in GENERATORS.items():
        flat = load_faiss().IndexFlatIP(16)
        flat.add(vectors[:known])
        generator = generator_class()
        generator.extend(flat, vectors[:known])
        generator.save(path)
        sound[kind] = path.read_bytes()
        path.unlink()

    def attempt(kind: str, data: bytes) -> None:
        path.write_bytes(data)
        flat = load_faiss().IndexFlatIP(16)
        flat.add(vectors)
        generator = GENERATORS[kind]()
        loaded = generator.load(path, flat)
        assert 0 < loaded <= len(vectors)
        for mask in (None, rng.random(len(vectors)) < 0.3):
            rows = generator.generate(vectors[:5], 20, mask if mask is None else mask[:loaded])
            assert rows.shape[0] == 5
            assert ((rows >= -1) & (rows < len(vectors))).all()
        generator.extend(flat, vectors)

    for what, kind, data in damaged_graphs(sound, random.Random(seed)):
        yield f"{kind}: {what}", functools.partial(attempt, kind, data)


def cases(kind: str, folder: Path, seed: int) -> Iterator[Case]:
    """Yield the cases of "manifests", "contents" or "graphs"."""
    if kind == "manifests":
        return manifest_cases(folder)
    return content_cases(folder, seed) if kind == "contents" else graph_cases(folder, seed)


@dataclass
class Counts:
    """Outcomes of the cases; `wrong` holds the cases that ended otherwise, by description."""

    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    peak_mib: float = 0.0

    @property
    def cases(self) -> int:
        """The number of cases tried."""
        return self.outcomes.total()


def run(kind: str, budget: int, seed: int = 0) -> Counts:
    """Try `budget` cases (for manifests, at most all there are) and return their outcomes."""
    counts, start = Counts(), 0
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    while True:
        command = [sys.executable, "-m", "tests.faults.hostile", kind, str(seed), str(start), str(budget)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        for line in lines:
            if "outcome" in line:
                counts.outcomes[line["outcome"]] += 1
                if line["outcome"] == "wrong":
                    counts.wrong.append(f"{line['case']}: {line['error']}")
            counts.peak_mib = max(counts.peak_mib, line.get("peak_mib", 0))
        if lines and "peak_mib" in lines[-1]:
            return counts
        if not lines or "outcome" in lines[-1] or done.returncode > 0:
            raise RuntimeError(f"the cases cannot be tried: {done.stderr[-2000:]}")
        counts.outcomes["killed"] += 1
        counts.wrong.append(f"{lines[-1]['case']}: killed by signal {-done.returncode}")
        start = lines[-1]["number"] + 1


def main() -> None:
    """Try cases, printing a line before and after each; runs in the process that may die."""
    kind, seed, start, budget = sys.argv[1], *map(int, sys.argv[2:])
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number, (what, attempt) in enumerate(itertools.islice(cases(kind, Path(folder), seed), budget)):
            if number < start:
                continue
            if number == start:
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            print(json.dumps({"number": number, "case": what}), flush=True)
            outcome, error = "answered", ""
            try:
                attempt()
            except IndexesError:
                outcome = "refused"
            except Exception as e:
                outcome, error = "wrong", f"{type(e).__name__}: {e}"[:300]
            print(json.dumps({"case": what, "outcome": outcome, "error": error}), flush=True)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(json.dumps({"peak_mib": grown / 1024}), flush=True)


if __name__ == "__main__":
    main()
