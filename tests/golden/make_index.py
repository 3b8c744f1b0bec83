"""Write the golden index of the current format: `python -m tests.golden.make_index`. An existing one is kept.

`index-v<N>/` is an index of 40 documents written by the version that introduced format N, with every kind of file:
two segments, removed documents, quarantine, an HNSW graph, stored search settings. `expected.json` next to it holds
its results, and the versions that made it. Later versions must read, search, verify and change it.
"""

import functools
import importlib.metadata
import json
import random
import sys
from pathlib import Path
from typing import Any

from indexes import stored_vectors
from indexes.collection import Collection
from indexes.interface import Document, Filter
from indexes.store import records
from indexes.store.records import EncoderRecord, Manifest
from indexes.vectors.faiss_index import FaissIndex
from indexes.writer import Writer
from linker import __version__
from tests.helpers import HashEncoder, sentence

HERE = Path(__file__).parent
ENCODER = HashEncoder(8)
MODES = ("bm25", "dense", "hybrid")


def documents() -> list[Document]:
    rng = random.Random(1)
    made = [
        Document(f"d{n}", sentence(rng, 6), sentence(rng, 2), {"group": n % 3, "tags": ["x", None]})
        for n in range(38)
    ]
    return [
        *made,
        Document("ü-1", "Zwölf Boxkämpfer jagen Viktor\u2028über den Deich"),
        Document("empty", ""),
    ]


def queries() -> list[str]:
    rng = random.Random(2)
    return [*(sentence(rng, 3) for _ in range(6)), "Boxkämpfer jagen", "nothing of the kind"]


def answers(index: Path) -> dict[str, Any]:
    """Return ids and scores by mode, with and without a filter."""
    hybrid = Collection.open(index).hybrid
    found: dict[str, Any] = {}
    for mode in MODES:
        for where in (None, "group=1"):
            given = Filter.parse([where] if where else [])
            hits = hybrid.search(queries(), 5, embed=ENCODER.encode, mode=mode, where=given).hits  # type: ignore[arg-type] # a mode's name
            found[f"{mode} {where or 'all'}"] = [
                [list(h.ids), [round(float(s), 6) for s in h.scores]] for h in hits
            ]
    return found


def make(out: Path) -> None:
    all_documents = documents()
    record = EncoderRecord("golden", ENCODER.fingerprint, ENCODER.dim)
    setattr(stored_vectors, "FaissIndex", functools.partial(FaissIndex, exact_below=10))  # noqa: B010 - for mypy's sake
    with Writer.create(out, Manifest(vectors="hnsw", encoder=record)) as writer:
        for part in (all_documents[:30], all_documents[30:]):
            writer.add(part, ENCODER.encode([d.full_text for d in part]))
            writer.quarantine(b'{"file": "corpus.jsonl", "record": 7, "reason": "no JSON", "raw": "{"}')
            writer.commit()
        writer.remove(["d4", "d31"])
        fusion = {"method": "rrf", "weights": [0.25, 0.75], "k": 60}
        writer.commit(search={"mode": "hybrid", "fusion": fusion})
    (out / "lock").unlink()


def main() -> None:
    out = HERE / f"index-v{records.FORMAT}"
    if out.exists():
        sys.exit(
            f"{out.name} is there: the index of a format is made once, by the version that introduces it"
        )
    make(out)
    versions = {name: importlib.metadata.version(name) for name in ("tantivy", "faiss-cpu", "numpy")}
    expected = {"made_by": {"linker": __version__, **versions}, "answers": answers(out)}
    (HERE / f"{out.name}.json").write_text(json.dumps(expected, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
