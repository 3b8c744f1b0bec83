"""How long does opening several directories as one index take, and how long did another version take?

`python -m benchmarks.opening --work FOLDER [--shards N] [--size N] [--beside CHECKOUT]` → results/opening.json. The
shards hold sentences of statements2articles, drawn at random, with random vectors of 256 dimensions, which opening
reads only for their checksums; they are built if missing, and kept. Each opening runs in its own process, after one
shard has been opened alone, and the versions take turns. `cpu_s` is CPU time on one core and `s` wall-clock time with
all cores, each the minimum of all turns: on a busy machine `s` is more than on an idle one.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.common import ROOT, shared_data
from benchmarks.support.direct import read
from benchmarks.support.harness import KEPT, Arguments, Results, benchmark
from benchmarks.support.passages import SEED, SHORTEST
from indexes.arrays import normalised
from linker.engine import building
from linker.engine.options import BuildOptions

DIM, TURNS = 256, 5
OPEN = """
import json, os, sys, time
from pathlib import Path
from linker.engine.engine import Engine
cores, verify, *directories = json.loads(sys.argv[1])
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
paths = [Path(d) for d in directories]
Engine.open(paths[:1], verify=False)
wall, cpu = time.perf_counter(), time.process_time()
engine = Engine.open(paths, on_failure="fail", verify=verify)
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu, len(engine)]))
"""


def shard(work: Path, number: int, size: int) -> Path:
    """Return the directory of a shard, which is built if it is missing."""
    out = work / f"opening-{size}-{number}.index"
    if (out / "manifest.json").exists():
        return out
    lines = work / "sentences.txt"
    if not lines.exists():
        articles = (text for _, text, _ in read(shared_data() / "statements2articles" / "corpus.jsonl.gz"))
        sentences = (s.replace("\n", " ") for text in articles for s in re.split(r"(?<=[.!?])\s+", text))
        lines.write_text("\n".join(s for s in sentences if len(s) >= SHORTEST))
    texts, rng = lines.read_text().split("\n"), np.random.default_rng([SEED, number])
    corpus, matrix, ids = (work / f"shard.{kind}" for kind in ("jsonl", "npy", "ids"))
    names = [f"{number}-{n:07d}" for n in range(size)]
    drawn = rng.choice(len(texts), size).tolist()
    documents = zip(names, drawn, strict=True)
    corpus.write_text("".join(json.dumps({"_id": id_, "text": texts[n]}) + "\n" for id_, n in documents))
    np.save(matrix, normalised(rng.standard_normal((size, DIM), dtype=np.float32)))
    ids.write_text("".join(f"{name}\n" for name in names))
    building.build([corpus], out, BuildOptions(vectors_file=matrix, ids_file=ids))
    for file in (corpus, matrix, ids):
        file.unlink()
    return out


def opened(checkout: Path, cores: int, verify: bool, directories: list[Path]) -> tuple[float, float, int]:
    """Return the wall-clock and CPU seconds that a version takes, and the number of documents."""
    arguments = json.dumps([cores, verify, *map(str, directories)])
    done = subprocess.run(
        [sys.executable, "-c", OPEN, arguments],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=True,
    )
    wall, cpu, documents = json.loads(done.stdout)
    return wall, cpu, documents


def measure(versions: dict[str, Path], directories: list[Path]) -> list[dict[str, Any]]:
    """Return a row for each version, with and without checking checksums."""
    cores = len(os.sched_getaffinity(0))
    rows: list[dict[str, Any]] = []
    for verify in (False, True):
        found: dict[str, list[Any]] = {name: [] for name in versions}
        for _ in range(TURNS):
            for name, checkout in versions.items():
                one, several = (opened(checkout, n, verify, directories) for n in (1, cores))
                found[name].append((one[1], several[0], one[2]))
        for name, turns in found.items():
            cpu, wall, documents = zip(*turns, strict=True)
            row = {"version": name, "verify": verify, "documents": documents[0]}
            rows.append({**row, "cpu_s": round(min(cpu), 3), "s": round(min(wall), 3)})
            print(rows[-1], flush=True)
    return rows


@benchmark(
    seed=SEED, work=KEPT, shards=10, size=100_000, beside=(Path | None, "a built checkout of another version")
)
def measured(options: Arguments) -> Results:
    directories = [shard(options.work, number, options.size).resolve() for number in range(options.shards)]
    versions = {"this": ROOT}
    if options.beside:
        name = ["git", "-C", str(options.beside), "rev-parse", "--short", "HEAD"]
        before = subprocess.run(name, capture_output=True, text=True, check=True).stdout.strip()
        versions = {before: options.beside.resolve(), **versions}
    about = {"shards": options.shards, "size": options.size, "dim": DIM, "turns": TURNS}
    return {**about, "rows": measure(versions, directories)}
