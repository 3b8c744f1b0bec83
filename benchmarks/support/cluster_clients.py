"""Clients of an index on a cluster: threads that add, delete and search with linker, and log the results.

`python -m benchmarks.support.cluster_clients ADDRESS FOLDER NAME WRITERS READERS` runs until SIGTERM.
FOLDER/NAME.jsonl gets one line per call: the caller, when it began and ended (seconds of the machine's monotonic
clock), and its outcome. Writers add batches of documents that share a word of the batch, and delete some later; ids
are never reused. Readers search for the documents that are never deleted, whose order is known, and for the batches
of all writers.
"""

import functools
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from indexes.interface import Document, Matrix
from linker.engine.engine import Engine

BATCH, K, DIM, KINDS, STANDING = 10, 10, 16, 7, 280
PAUSE = 0.25  # seconds between two calls made by the same thread
OLD = 4  # number of turns after which a writer deletes from a batch


def standing() -> tuple[list[Document], Matrix]:
    """Return documents that stay, with vectors, float32 [STANDING, DIM]: their last components are 0."""
    documents = [
        Document(f"s{n}", " ".join([f"kind{n % KINDS}", *["filler"] * (n // KINDS)])) for n in range(STANDING)
    ]
    vectors = np.zeros((STANDING, DIM), dtype=np.float32)
    vectors[:, : DIM // 2] = np.random.default_rng(0).standard_normal((STANDING, DIM // 2))
    return documents, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def expected(query: str) -> list[str]:
    """Return the ids that a search for standing documents must return, in order, whatever else is in the index.

    "kind3": documents with this word, shorter ones first. "near5": by cosine to document 5.
    """
    if query.startswith("kind"):
        return [f"s{int(query[4:]) + KINDS * n}" for n in range(K)]
    _, vectors = standing()
    return [f"s{row}" for row in np.argsort(-(vectors @ vectors[int(query[4:])]), kind="stable")[:K]]


def batch(name: str, turn: int) -> tuple[list[Document], Matrix]:
    """Return the documents of a writer's turn, with vectors, float32 [BATCH, DIM]: their first components are 0."""
    rng = np.random.default_rng(turn)
    vectors = np.zeros((BATCH, DIM), dtype=np.float32)
    vectors[:, DIM // 2 :] = rng.standard_normal((BATCH, DIM // 2))
    return [Document(f"{name}-{turn}-{n}", f"{name}x{turn} number{n}") for n in range(BATCH)], vectors


class Clients:
    """Shared state of the threads: the index, the log, and when to stop."""

    def __init__(self, address: str, folder: Path) -> None:
        self.folder, self.stop = folder, threading.Event()
        self._address = address
        self._lock = threading.Lock()
        self.log: Any = None

    def call(self, who: str, kind: str, what: Callable[[Engine], Any], **facts: Any) -> bool:
        """Log a call; return whether it succeeded."""
        event: dict[str, Any] = {"who": who, "kind": kind, **facts, "begin": time.monotonic()}
        try:
            answer = what(self._engine())
            event |= {"answer": answer} if kind == "search" else {}
        except Exception as e:  # any exception is a result of the benchmark
            event |= {"error": str(e), "type": type(e).__name__}
        event["end"] = time.monotonic()
        with self._lock:
            self.log.write(orjson.dumps(event) + b"\n")
        return "error" not in event

    def _engine(self) -> Engine:
        mine = threading.current_thread()
        if not hasattr(mine, "engine"):
            mine.engine = Engine.open(self._address, on_failure="fail")  # type: ignore[attr-defined]
        engine: Engine = mine.engine  # type: ignore[attr-defined]
        return engine

    def write(self, name: str) -> None:
        """Add a batch per turn, and delete half of an older one, or all of it."""
        turns: list[int] = []
        turn = 0
        while not self.stop.wait(PAUSE):
            documents, vectors = batch(name, turn)
            ids = [d.id for d in documents]
            if self.call(
                name, "add", functools.partial(Engine.add, documents=documents, vectors=vectors), ids=ids
            ):
                turns.append(turn)
            (self.folder / f"turn-{name}").write_text(str(turn))
            turn += 1
            if len(turns) > OLD:
                old = turns.pop(0)
                gone = [d.id for d in batch(name, old)[0][:: 1 + old % 2]]
                self.call(name, "delete", functools.partial(Engine.delete, ids=gone), ids=gone)

    def read(self, name: str) -> None:
        """Search for standing documents and for the batches of all writers."""
        rng = random.Random(name)
        _, vectors = standing()
        while not self.stop.wait(PAUSE):
            kind = rng.choice(["kind", "near", "batch", "batch"])
            if kind == "batch":
                self._search(name, self._batch(rng))
            elif kind == "kind":
                self._search(name, f"kind{rng.randrange(KINDS)}")
            else:
                row = rng.randrange(STANDING)
                self._search(name, f"near{row}", vectors[row])

    def _search(self, name: str, query: str, vector: Any = None) -> None:
        def ask(engine: Engine) -> Sequence[str]:
            answer = (
                engine.search(query, K, mode="bm25") if vector is None else engine.search(k=K, vectors=vector)
            )
            return answer.hits[0].ids

        self.call(name, "search", ask, query=query)

    def _batch(self, rng: random.Random) -> str:
        """Return the word that marks a random batch, usually a recent one."""
        turns = {file.name[5:]: int(file.read_text() or 0) for file in self.folder.glob("turn-*")}
        if not turns:
            return "kind0"
        writer = rng.choice(sorted(turns))
        return f"{writer}x{max(0, turns[writer] - int(rng.expovariate(0.2)))}"


def main() -> None:
    address, folder, name, writers, readers = sys.argv[1:]
    clients = Clients(address, Path(folder))
    signal.signal(signal.SIGTERM, lambda *_: clients.stop.set())
    with (Path(folder) / f"{name}.jsonl").open("wb", buffering=0) as log:
        clients.log = log
        threads = [
            threading.Thread(target=run, args=(f"{name}{kind}{n}",), daemon=True)
            for run, kind, count in ((clients.write, "w", writers), (clients.read, "r", readers))
            for n in range(int(count))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main()
