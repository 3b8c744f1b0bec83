"""The worst load that one token may send: every slow kind of request, concurrently, without a pause.

It is sent from a separate process: threads in the measuring process would compete for the interpreter.
"""

from __future__ import annotations

import http.client
import itertools
import multiprocessing
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from typing import Any

import numpy as np
import orjson

TOPICS, DEPTH, THREADS = 2000, 30, 4  # topics and depth of an evaluated run; threads per kind of request
MEASURES = ["official", *(f"nDCG@{k}" for k in range(1, 101))]
Body = tuple[str, bytes]


def requests(texts: Sequence[str]) -> dict[str, Callable[[], Body]]:
    """Return, by name, functions that make a path and a body."""
    rng, long = random.Random(0), list(itertools.islice(itertools.cycle(texts), 1000))
    run = "".join(
        f"q{t} Q0 d{rng.randrange(999)}-{d} {d} {DEPTH - d} r\n" for t in range(TOPICS) for d in range(DEPTH)
    )
    qrels = "".join(f"q{t} 0 d{rng.randrange(999)}-{d} 1\n" for t in range(TOPICS) for d in range(DEPTH))
    mapping = {f"q{t}": {f"d{d}": d / 7 for d in range(DEPTH)} for t in range(TOPICS)}
    heavy: dict[str, dict[str, Any]] = {
        "evaluate": {"qrels": qrels, "runs": {f"r{n}": run for n in range(5)}, "measures": MEASURES, "intervals": True},
        "evaluate mappings": {"qrels": {"q0": {"d0": 1}}, "runs": {f"r{n}": mapping for n in range(8)}},
        "batch": {"texts": long, "k": 100, "documents": False},
        "documents": {"texts": long[:100], "k": 1000},
        "explain": {"texts": texts[:10], "k": 100, "explain": True},
        "embeddings": {"model": "", "input": long},
        "rerank": {"query": texts[0], "texts": long},
        "conditions": {"text": texts[0], "where": {"lang": ["en"] * 1_000_000}},
        "links": {"source": {"language": "fr", "documents": [{"id": "f", "text": "x"}]},
                  "target": {"language": "en", "documents": [{"id": "e", "text": "x"}]},
                  "method": "hapax", "links": [["f", "e"]] * 300_000},
    }  # fmt: skip
    paths = {
        "evaluate mappings": "evaluate",
        "batch": "search",
        "conditions": "search",
        "documents": "search",
        "explain": "search",
        "links": "link",
    }

    def fixed(name: str, content: dict[str, Any]) -> Callable[[], Body]:
        body = f"/v1/{paths.get(name, name)}", orjson.dumps(content)
        return lambda: body

    def flood() -> Body:
        return "/v1/search", orjson.dumps({"text": rng.choice(texts), "k": rng.randrange(1, 100)})

    def find() -> Body:
        seeds = [{"id": str(n), "text": text} for n, text in enumerate(texts[:100])]
        return "/v1/find", orjson.dumps({"seeds": seeds, "limit": 1000})

    return {name: fixed(name, content) for name, content in heavy.items()} | {"flood": flood, "find": find}


@contextmanager
def attack(port: int, token: str, texts: Sequence[str], model: str) -> Iterator[Counter[str]]:
    """Send all kinds of requests while the block runs; yield the counts of statuses, complete at its end."""
    context = multiprocessing.get_context("spawn")
    ended, queue, counts = context.Event(), context.Queue(), Counter[str]()
    child = context.Process(target=_send, args=(port, token, texts, model, ended, queue), daemon=True)
    child.start()
    queue.get()  # the attack has begun
    try:
        yield counts
    finally:
        ended.set()
        counts.update(queue.get())
        child.kill()


def _send(
    port: int, token: str, texts: Sequence[str], model: str, ended: Event, queue: Queue[Counter[str] | None]
) -> None:
    counts = Counter[str]()

    def ask(name: str, make: Callable[[], Body]) -> None:
        while not ended.is_set():
            path, body = make()
            body = body.replace(b'"model":""', b'"model":"%s"' % model.encode())
            try:
                counts[f"{name} {post(port, token, path, body)}"] += 1
            except (OSError, http.client.HTTPException):
                counts[f"{name} failed"] += 1

    for name, make in requests(texts).items():
        for _ in range(16 if name == "flood" else THREADS):
            threading.Thread(target=ask, args=(name, make), daemon=True).start()
    queue.put(None)
    ended.wait()
    queue.put(counts.copy())


def post(port: int, token: str, path: str, body: bytes) -> int:
    """Return the status of a request on its own connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
    try:
        headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def waits(port: int, token: str, texts: Sequence[str], seconds: float) -> dict[str, float]:
    """Return how long small searches, started five times per second, take, in ms."""
    measured, statuses, threads = list[float](), Counter[int](), list[threading.Thread]()

    def ask(text: str) -> None:
        begun = time.monotonic()
        statuses[post(port, token, "/v1/search", orjson.dumps({"text": text, "k": 10}))] += 1
        measured.append(1000 * (time.monotonic() - begun))

    for number in range(int(5 * seconds)):  # even if earlier requests are still unanswered
        thread = threading.Thread(target=ask, args=(texts[number % len(texts)],))
        thread.start()
        threads.append(thread)
        time.sleep(0.2)
    for thread in threads:
        thread.join()
    found = {f"p{p}_ms": round(float(np.percentile(measured, p)), 1) for p in (50, 90, 99, 100)}
    return {**found, "searches": len(measured), "answered": statuses[200]}
