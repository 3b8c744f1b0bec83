"""How much memory building an index of a million documents and searching it take, each in its own process.

`peak_rss` is the kernel's own high-water mark (VmHWM); it counts mapped pages of the index, which the kernel reclaims
when memory is short, so the anonymous part, sampled every 50 ms, is reported next to it. The texts are 20 words drawn
from 200,000 by Zipf's law; the stand-in encoder seeds a generator with each text's hash.
"""

import json
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import xxhash

from benchmarks.support import common
from benchmarks.support.common import fresh

SEED, DIM, WORDS, LENGTH = 17, 256, 200_000, 20
QUERIES = 64


class StandIn:
    """Vectors from the hash of a text: no model, no training, the same in every process."""

    dim = DIM
    fingerprint = "stand-in".ljust(64, "0")

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[np.float32]:
        rows = np.empty((len(texts), DIM), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            bits = np.random.SFC64(xxhash.xxh3_64_intdigest(text.encode()))
            np.random.Generator(bits).standard_normal(out=row, dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows


def write_corpus(path: Path, documents: int) -> Path:
    """Write JSON lines of Zipf-distributed words."""
    rng = np.random.default_rng(SEED)
    shares = np.cumsum(1 / np.arange(1, WORDS + 1))
    shares /= shares[-1]
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, documents, 10_000):
            words = np.searchsorted(shares, rng.random((min(10_000, documents - start), LENGTH)))
            for number, row in enumerate(words.tolist(), start):
                file.write(json.dumps({"id": f"doc-{number}", "text": " ".join(f"w{w}" for w in row)}) + "\n")
    return path


def build(corpus: Path, out: Path, kind: str) -> dict[str, Any]:
    from linker.engine import building

    with mock.patch.object(building, "load_encoder", lambda _name, **_: StandIn()):
        report = building.build([corpus], out, building.BuildOptions(encoder="stand-in", vectors=kind))
    return {"documents": report.documents}


def query(out: Path, mode: str) -> dict[str, Any]:
    """Open the index, run a batch and 16 single queries (enough to complete any lazy preparation)."""
    from linker.engine.engine import Engine

    engine = Engine(out, encoder=StandIn())
    opened = memory()
    texts = [engine.collection.documents[row].text for row in range(0, len(engine), len(engine) // QUERIES)]
    answer = engine.search(texts, 10, mode=mode)  # type: ignore[arg-type] # a mode's name
    for text in texts[:16]:
        engine.search(text, 10, mode=mode)  # type: ignore[arg-type] # a mode's name
    assert all(len(hits) == 10 for hits in answer.hits)
    if mode != "bm25":  # each text finds itself
        assert all(float(hits.scores[0]) > 0 for hits in answer.hits)
    return {"opened_mib": opened, "in_use_mib": memory(), "queries": len(texts)}


def compact(out: Path) -> dict[str, Any]:
    from indexes.writer import Writer

    with Writer.open(out) as writer:
        writer.remove([f"doc-{n}" for n in range(0, writer.manifest.rows, 10)])
        writer.commit()
    with Writer.open(out) as writer:
        return {"documents": writer.compact().documents}


def memory() -> dict[str, float]:
    """Return this process's memory by kind, in MiB."""
    names = {"rss": "VmRSS", "anonymous": "RssAnon", "file": "RssFile", "peak_rss": "VmHWM"}
    return {name: round(common.memory(field)) for name, field in names.items()}


def watched(run: Callable[..., dict[str, Any]], *args: Any) -> dict[str, Any]:
    """Run in this process; return its result, time and peak memory in MiB."""
    peak, ended = 0.0, threading.Event()

    def sample() -> None:
        nonlocal peak
        while not ended.wait(0.05):
            peak = max(peak, memory()["anonymous"])

    sampler = threading.Thread(target=sample)
    sampler.start()
    begin, cpu = time.perf_counter(), time.process_time()
    try:
        result = run(*args)
    finally:
        ended.set()
        sampler.join()
    return {
        **result,
        "peak_rss_mib": memory()["peak_rss"],
        "peak_anonymous_mib": peak,
        "at_end_mib": memory(),
        "seconds": round(time.perf_counter() - begin, 1),
        "cpu_s": round(time.process_time() - cpu, 1),
    }


def measure_memory(work: Path, documents: int, kind: str) -> dict[str, Any]:
    corpus, out = work / "corpus.jsonl", work / kind
    if not corpus.exists():
        write_corpus(corpus, documents)
    shutil.rmtree(out, ignore_errors=True)
    results = {"build": fresh(watched, build, corpus, out, kind)}
    print(kind, "build", results["build"], flush=True)
    for name, step in (
        ("query", (query, out, "hybrid")),
        ("remove a tenth and compact", (compact, out)),
        ("query after it", (query, out, "hybrid")),
    ):
        results[name] = fresh(watched, *step)
        print(kind, name, results[name], flush=True)
    return {"documents": documents, "dimensions": DIM, **results}
