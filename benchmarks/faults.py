"""How much memory do a build of a million documents and a query process take, and what does the store survive?

`python -m benchmarks.faults [--work FOLDER] [--documents N]` → benchmarks/results/faults.json. Targets: 1 M documents
with vectors of 256 dimensions are built within 2.5 GiB and searched within 1.5 GiB (resident, of whatever pages).

Each step runs in its own process. `peak_rss` is the kernel's own high-water mark (VmHWM); it includes mapped pages
of the index, which the kernel reclaims when memory is short, so the anonymous part, sampled every 50 ms, is recorded
as well. The texts are 20 words drawn from 200,000 by Zipf's law; the stand-in encoder seeds a generator with the hash
of each text.

Then a small index is killed at every fault point of every change and at random moments; each time, the committed
state must be the one before or after, and repeating the change must end as if it had not been interrupted. The same is
required of whatever a power failure may leave of each change, of models and small files as well
(tests/power/disk.py models the disk). The part `fuzz` counts the mutated inputs that tests/fuzz feeds to all readers of
foreign files, and those that were neither accepted nor refused.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import re
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import xxhash

from benchmarks.support.common import RESULTS, record
from indexes.store import manifest as manifests
from tests.faults.support import Worker, content
from tests.fuzz import process as fuzzing
from tests.helpers import write_corpus as write_documents
from tests.power.changes import CHANGES
from tests.power.checking import check
from tests.power.recording import record as record_calls

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
    from linker import building

    with mock.patch.object(building, "load_encoder", lambda _name, **_: StandIn()):
        report = building.build([corpus], out, building.BuildOptions("stand-in", kind))
    return {"documents": report.documents}


def query(out: Path, mode: str) -> dict[str, Any]:
    """Open the index, ask a batch and 16 single queries (enough that whatever a search prepares is prepared)."""
    from linker.engine import Engine

    engine = Engine(out, encoder=StandIn())
    opened = memory()
    texts = [engine.collection.documents[row].text for row in range(0, len(engine), len(engine) // QUERIES)]
    answer = engine.search(texts, 10, mode=mode)  # type: ignore[arg-type] # a mode's name
    for text in texts[:16]:
        engine.search(text, 10, mode=mode)  # type: ignore[arg-type] # a mode's name
    assert all(len(hits) == 10 for hits in answer.hits)
    if mode != "bm25":  # each finds itself
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
    status = Path("/proc/self/status").read_text()
    names = {"rss": "VmRSS", "anonymous": "RssAnon", "file": "RssFile", "peak_rss": "VmHWM"}
    return {n: round(int(re.search(rf"{f}:\s+(\d+)", status)[1]) / 1024) for n, f in names.items()}  # type: ignore[index] # Linux has them


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


def in_child(run: Callable[..., dict[str, Any]], *args: Any) -> dict[str, Any]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(watched, run, *args).result()


def measure_memory(work: Path, documents: int, kind: str) -> dict[str, Any]:
    corpus, out = work / "corpus.jsonl", work / kind
    if not corpus.exists():
        write_corpus(corpus, documents)
    shutil.rmtree(out, ignore_errors=True)
    results = {"build": in_child(build, corpus, out, kind)}
    print(kind, "build", results["build"], flush=True)
    for name, step in (
        ("query", (query, out, "hybrid")),
        ("remove a tenth and compact", (compact, out)),
        ("query after it", (query, out, "hybrid")),
    ):
        results[name] = in_child(*step)
        print(kind, name, results[name], flush=True)
    return {"documents": documents, "dimensions": DIM, **results}


def measure_kills(work: Path, at_random: int) -> dict[str, dict[str, int]]:
    """Kill each change at every fault point and at random; count the ends that were neither all nor nothing."""
    rng, results = random.Random(SEED), {}
    given = {
        "build": [write_documents(work / "c.jsonl", 400)],
        "add": [write_documents(work / "m.jsonl", 150, seed=1, prefix="m")],
        "delete": [work / "ids"],
        "compact": [],
    }
    (work / "ids").write_text("d5 d6 d7 d300", encoding="utf-8")
    (work / "first").write_text("d1 d2", encoding="utf-8")
    with Worker() as worker:
        worker.make("build", *given["build"], work / "base")
        worker.make("delete", work / "first", work / "base")
        for change, paths in given.items():
            begin = None if change == "build" else work / "base"
            trial = Trial(worker, change, paths, begin, work / "out")
            deaths: list[dict[str, Any]] = [
                {"fault": f"{point}:{times}"} for point, times in trial.passed.items()
            ]
            moments = [{"after": rng.uniform(0, trial.seconds)} for _ in range(at_random)]
            results[change] = {
                "fault_points": len(deaths),
                "random_moments": len(moments),
                **Counter(trial.outcome(**death) for death in [*deaths, *moments]),
            }
            print(change, results[change], flush=True)
    return results


class Trial:
    """One change that is killed again and again, and what it leads from and to."""

    def __init__(
        self, worker: Worker, change: str, paths: Sequence[Path], begin: Path | None, out: Path
    ) -> None:
        self._worker, self._change, self._paths, self._begin, self._out = worker, change, paths, begin, out
        self._before = self._reset()
        start = time.perf_counter()
        self.passed = worker.make(change, *paths, out)
        self.seconds = time.perf_counter() - start
        self._after = content(out)

    def _reset(self) -> object:
        shutil.rmtree(self._out, ignore_errors=True)
        if self._begin is None:
            return None
        shutil.copytree(self._begin, self._out)
        return content(self._out)

    def outcome(self, **death: Any) -> str:
        """Die, look, do it again; say how that went."""
        self._reset()
        answer = self._worker.ask(self._change, *self._paths, self._out, **death)
        committed = content(self._out) if (self._out / manifests.NAME).exists() else None
        whole = committed in (self._before, self._after) or self._change == "build"
        if committed != self._after:
            self._worker.make(self._change, *self._paths, self._out)
        if not whole or content(self._out) != self._after:
            return "wrong"
        return "killed_and_right" if answer["status"] else "ended_before_the_kill"


def measure_power(work: Path, changes: Sequence[str], states: int, again: int) -> dict[str, dict[str, int]]:
    """Open what a power cut may leave of changes, and make each again on a sample of it."""
    results = {}
    for job, history in record_calls(changes, work).items():
        verdict = check(job, history, work, states, again)
        results[job] = {
            "calls": len(history.ops),
            "states": verdict.states,
            "made_again": verdict.made_again,
            "wrong": len(verdict.wrong),
        }
        print(job, results[job], *verdict.wrong[:3], flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, help="folder for the corpus, kept (otherwise temporary)")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument(
        "--kinds", default="flat,auto", help="of vectors; auto is what a build does by itself"
    )
    parser.add_argument(
        "--parts", default="memory,kills,power", help="which to run; the others stay as recorded"
    )
    parser.add_argument("--random", type=int, default=25, help="kills of each change at random moments")
    parser.add_argument("--states", type=int, default=2000, help="of each change, that a power cut may leave")
    parser.add_argument(
        "--again", type=int, default=50, help="of these, after which the change is made again"
    )
    parser.add_argument("--fuzz-seconds", type=float, default=60, help="for each target of the part fuzz")
    parser.add_argument("--changes", nargs="*", default=list(CHANGES), help="for the part power; others stay")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(exist_ok=True)
        results: dict[str, Any] = {}
        if "memory" in options.parts:
            kinds = options.kinds.split(",")
            measured = {kind: measure_memory(work, options.documents, kind) for kind in kinds}
            results["memory"] = earlier().get("memory", {}) | measured
        if "kills" in options.parts:
            results["kills"] = measure_kills(Path(temporary), options.random)
        if "fuzz" in options.parts:
            results["fuzz"] = fuzzing.counts("--seconds", str(options.fuzz_seconds))
        if "power" in options.parts:
            found = measure_power(Path(temporary), options.changes, options.states, options.again)
            results["power"] = earlier().get("power", {}) | found
    about = {
        "texts": f"{LENGTH} words of {WORDS}, by Zipf's law",
        "encoder": "a stand-in: normal vectors, seeded by the hash of each text",
        "targets_mib": {"build": 2560, "query": 1536},
    }
    print(record("faults", {**earlier(), **results, "about": about}, SEED))


def earlier() -> dict[str, Any]:
    """Return the results on file, of which a run of one part replaces that part."""
    path = RESULTS / "faults.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))["results"]) if path.exists() else {}


if __name__ == "__main__":
    main()
