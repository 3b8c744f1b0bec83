"""Does the service stay correct, with flat memory, while workers are killed and documents change?

`python -m benchmarks.soak [--minutes 30] [--work FOLDER]` → benchmarks/results/soak.json. Target: no wrong response,
no failed request except those in flight at a kill, flat memory.

`linker serve --api --workers 3` serves sentences of statements2articles with a star's vectors. Each minute
(`--kill-every`) one of the two younger workers is killed (SIGKILL); the oldest survives the whole run, and its memory
must stay flat. Every few seconds a document is put or deleted over HTTP, and every few minutes the index is compacted
from the command line. Meanwhile bursts of searches, each on its own connection, are compared with an engine in this
process, which runs the same queries on one generation after another. A response must come from a generation committed
at most BEHIND commits before the request began, or later; responses older than the last commit count as stale.
"""

import http.client
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.harness import WORK, Arguments, Results, benchmark
from benchmarks.support.passages import statements
from benchmarks.support.serve_data import make_index
from benchmarks.support.service import Service, memory_mib, serving
from benchmarks.support.soak_oracle import Answered, K, Oracle
from indexes.hybrid import Mode

SEED, WORKERS, QUERIES, BURST = 0, 3, 24, 8
COUNTED = (
    "answers", "wrong", "stale", "failed", "failed_under_way_at_a_kill", "changes", "compactions", "kills_put_off",
)  # fmt: skip


@dataclass(frozen=True)
class Pace:
    """How often events happen, in seconds."""

    burst: float = 1.0
    change: float = 5.0
    kill: float = 60.0
    compact: float = 300.0
    memory: float = 10.0


@dataclass
class Tally:
    """Counts of events."""

    counts: Counter[str] = field(default_factory=Counter)
    waits: list[float] = field(default_factory=list)  # the duration of each answered request in seconds
    faults: list[str] = field(default_factory=list)
    kills: list[float] = field(default_factory=list)
    memory: list[dict[str, Any]] = field(default_factory=list)


class Soak:
    """One run: searches in threads of a pool, changes and kills in the thread that calls `run`."""

    def __init__(
        self, service: Service, directory: Path, modes: Sequence[Mode], texts: Sequence[str], pace: Pace
    ) -> None:
        self._service, self._directory, self._pace = service, directory, pace
        self._modes, self._texts, self._oracle = modes, texts, Oracle(directory, texts, modes)
        self._workers = len(service.workers())
        self._committed = self._oracle.generation
        self._asked: deque[Answered] = deque()
        self._failed: deque[tuple[float, float, str]] = deque()  # failed requests: from, to, why
        self._rng, self.tally, self._lock = random.Random(SEED), Tally(), threading.Lock()
        self._present: list[str] = []
        self._number = 0

    def run(self, seconds: float) -> Tally:
        """Run searches, changes and kills for this long."""
        begin = time.monotonic()
        do: dict[str, Callable[[], None]] = {
            "change": self._change, "kill": self._kill, "compact": self._compact,
            "memory": lambda: self._look(time.monotonic() - begin),
        }  # fmt: skip
        due: dict[str, float] = {name: begin + getattr(self._pace, name) for name in do}
        bursts = threading.Event()
        with ThreadPoolExecutor(BURST) as pool:
            self._pool = pool
            asking = threading.Thread(target=self._ask_on, args=(bursts,))
            asking.start()
            while (now := time.monotonic()) < begin + seconds:
                name = min(due, key=lambda n: due[n])
                if due[name] > now:
                    time.sleep(min(due[name] - now, 0.2))
                    continue
                do[name]()
                due[name] = max(due[name] + getattr(self._pace, name), time.monotonic())
            bursts.set()
            asking.join()
        self._oracle.learn()
        self._compare()
        return self.tally

    def _ask_on(self, ended: threading.Event) -> None:
        while not ended.wait(self._pace.burst):
            self._burst()

    def _burst(self) -> None:
        cases = [(self._rng.choice(self._modes), self._rng.randrange(len(self._texts))) for _ in range(BURST)]
        list(self._pool.map(self._ask, *zip(*cases, strict=True)))

    def _ask(self, mode: Mode, query: int) -> None:
        generation, start = self._committed, time.monotonic()
        body = {"text": self._texts[query], "k": K, "mode": mode, "documents": False}
        try:
            status, answer = self._service.request("POST", "/v1/search", body)
        except (OSError, http.client.HTTPException) as e:
            self._failed.append((start, time.monotonic(), repr(e)))
            return
        if status != http.client.OK or answer["degraded"]:
            self._failed.append((start, time.monotonic(), f"status {status}: {str(answer)[:200]}"))
            return
        hits = answer["results"][0]["hits"]
        scores = np.array([hit["score"] for hit in hits], dtype=np.float32)
        with self._lock:
            self.tally.waits.append(time.monotonic() - start)
        self._asked.append(Answered(mode, query, generation, tuple(hit["id"] for hit in hits), scores))

    def _change(self) -> None:
        if len(self._present) > 20 and self._rng.random() < 0.5:
            id_ = self._present.pop(self._rng.randrange(len(self._present)))
            self._send("DELETE", id_, None, {204, 404})
        else:
            self._number += 1
            id_ = f"new{self._number}"
            text = f"{self._rng.choice(self._texts)} {id_}"
            self._send("PUT", id_, {"text": text, "metadata": {"number": self._number}}, {200, 201})
            self._present.append(id_)
        self.tally.counts["changes"] += 1

    def _send(self, method: str, id_: str, body: Any, good: set[int]) -> None:
        """Make a change; repeat it if the worker that makes it is killed, since its outcome is unknown."""
        while True:
            start = time.monotonic()
            try:
                status, answer = self._service.request(method, f"/v1/documents/{id_}", body)
                why = "" if status in good else f"{method} status {status}: {str(answer)[:200]}"
            except (OSError, http.client.HTTPException) as e:
                why = f"{method} {e!r}"
            self._learn()
            if not why:
                return
            self._failed.append((start, time.monotonic(), why))
            time.sleep(0.2)

    def _compact(self) -> None:
        command = [sys.executable, "-m", "linker", "index", "compact", str(self._directory)]
        subprocess.run(command, check=True, capture_output=True)
        self.tally.counts["compactions"] += 1
        self._learn()

    def _learn(self) -> None:
        self._oracle.learn()
        self._committed = self._oracle.generation
        self._compare()

    def _compare(self) -> None:
        """Compare the responses so far: none of them can be from a generation that the oracle does not know."""
        for _ in range(len(self._asked)):
            answered = self._asked.popleft()
            generation = self._oracle.generation_of(answered)
            self.tally.counts["answers"] += 1
            if generation is None:
                self.tally.counts["wrong"] += 1
                self.tally.faults.append(f"wrong: {answered}")
            elif generation < answered.generation:
                self.tally.counts["stale"] += 1
        for _ in range(len(self._failed)):
            start, end, why = self._failed.popleft()
            under_way = any(start <= kill <= end for kill in self.tally.kills)
            self.tally.counts["failed_under_way_at_a_kill" if under_way else "failed"] += 1
            if not under_way:
                self.tally.faults.append(f"failed: {why}")

    def _kill(self) -> None:
        workers = self._service.workers()
        if len(workers) < self._workers:
            self.tally.counts["kills_put_off"] += 1  # the worker killed before is still being replaced
            return
        self.tally.kills.append(time.monotonic())
        self._service.kill(self._rng.choice(workers[1:]))

    def _look(self, at: float) -> None:
        workers = self._service.workers()
        try:
            oldest, pss = memory_mib(workers[0]), [memory_mib(pid)["pss"] for pid in workers]
        except (OSError, ProcessLookupError):  # a worker was just killed
            return
        self.tally.memory.append(
            {"s": round(at), "oldest": oldest, "workers": len(workers), "pss_sum": round(sum(pss), 1)}
        )


def summary(tally: Tally, seconds: float) -> dict[str, Any]:
    """Return the figures to record."""
    third = max(1, len(tally.memory) // 3)
    oldest = [look["oldest"]["pss"] for look in tally.memory]
    waits = np.array(tally.waits or [np.nan]) * 1000
    return {
        "minutes": round(seconds / 60, 1),
        "kills": len(tally.kills),
        **{name: tally.counts[name] for name in COUNTED},
        "ms": {f"p{p}": round(float(np.percentile(waits, p)), 1) for p in (50, 99, 100)},
        "oldest_worker_pss_mib": {
            "second_third": round(statistics.median(oldest[third : 2 * third] or [0]), 1),
            "last_third": round(statistics.median(oldest[-third:] or [0]), 1),
            "peak": max(oldest, default=0),
        },
        "faults": tally.faults[:20],
        "memory": tally.memory,
    }


def soak(
    directory: Path,
    seconds: float,
    modes: Sequence[Mode],
    texts: Sequence[str],
    pace: Pace,
    workers: int = WORKERS,
) -> Tally:
    """Serve an index with `workers` processes and run everything."""
    with serving(directory, "--workers", str(workers)) as service:
        return Soak(service, directory, modes, texts, pace).run(seconds)


@benchmark(seed=SEED, minutes=30.0, sentences=20_000, work=WORK, kill_every=60.0)
def measured(options: Arguments) -> Results:
    seconds = 60 * options.minutes
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        directory = make_index(Path(folder), options.sentences)
        pace = Pace(kill=options.kill_every)
        tally = soak(directory, seconds, ("bm25", "dense"), statements()[:QUERIES], pace)
    results = summary(tally, seconds)
    print({name: value for name, value in results.items() if name != "memory"}, file=sys.stderr)
    return results
