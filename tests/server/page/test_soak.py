"""Ten reviewers judge while one client stalls, another evaluates, and the server is killed: no loss, no duplicates.

LINKER_SOAK=SECONDS sets its length; on a slow machine it lasts until each reviewer was served.
"""

import collections
import contextlib
import functools
import json
import os
import random
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from linker.engine.building import BuildOptions, build
from linker.review.interface import Seed
from linker.review.ledger import Ledger
from linker.review.project import Workspace
from tests.server.page.chromium import Server
from tests.server.page.support import form

SECONDS = float(os.environ.get("LINKER_SOAK") or 4)
KILLS = 1
REVIEWERS = tuple(f"reviewer {n}" for n in range(10))
DOCUMENTS = 5_000
ADMIN, READER = "a" * 32, "r" * 32
STALLED = 100  # connections on which one client leaves a request half-sent
PATIENCE = 120.0  # seconds; a later response counts as missing
EVERYBODY = frozenset({*REVIEWERS, "staller", "evaluator"})


@dataclass
class Log:
    """The clients' log. `sent` and `stored`: judgements as (reviewer, document, verdict).

    `refused`: (reviewer, document); another judged it first. `waited`: reviewers not yet served by this process.
    """

    sent: collections.Counter[tuple[str, str, str]] = field(default_factory=collections.Counter)
    stored: set[tuple[str, str, str]] = field(default_factory=set)
    refused: set[tuple[str, str]] = field(default_factory=set)
    waited: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def until_all_are_served(self, seconds: float) -> None:
        """Wait some seconds, then for any reviewers not served meanwhile: each must be."""
        self.waited = set(EVERYBODY)
        time.sleep(seconds)
        end = time.monotonic() + PATIENCE
        while self.waited and not self.faults and time.monotonic() < end:
            time.sleep(0.1)
        assert not self.waited or self.faults, f"not served: {sorted(self.waited)}"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the review "soak", large enough to last, and a token file."""
    folder = tmp_path_factory.mktemp("soak")
    project = Workspace(folder / "reviews").create("Soak")
    words, chance = (
        ["flood", "rain", "street", "river", "school", "market", "bridge", "voters", "volcano", "debate"],
        random.Random(0),
    )
    with (folder / "posts.jsonl").open("w", encoding="utf-8") as file:
        for n in range(DOCUMENTS):
            own = " ".join(f"{part}{n}" for part in ("house", "street", "name", "day"))  # no two are copies
            text = f"{' '.join(chance.choices(words, k=6))} {own}"
            file.write(json.dumps({"id": f"d{n}", "text": text}) + "\n")
    build([folder / "posts.jsonl"], project.index, BuildOptions())
    with Ledger(project.ledger) as ledger:
        ledger.put_seeds([Seed("s", "rain and flood in the street", "Floods")])
    tokens = folder / "tokens"
    tokens.write_text(f"{ADMIN}\n{READER} read reader\n", encoding="utf-8")
    tokens.chmod(0o600)
    return folder


def test_no_judgement_is_lost_or_doubled(workspace: Path) -> None:
    log, ended = Log(), threading.Event()
    options = ("--api", "--token-file", str(workspace / "tokens"))
    server = Server(workspace / "reviews", 0, *options)
    port, errors = server.port, list[str]()
    tasks: list[Callable[[], None]] = [
        *(functools.partial(_review, server.address, name, log, ended) for name in REVIEWERS),
        functools.partial(_stall, server.address, log, ended),
        functools.partial(_evaluate, server.address, log, ended),
    ]
    with ThreadPoolExecutor(len(tasks)) as pool:
        running = [pool.submit(task) for task in tasks]
        try:
            for _ in range(KILLS):
                log.until_all_are_served(SECONDS / (KILLS + 1))
                server.kill()
                errors.append(server.errors)
                server = Server(workspace / "reviews", port, *options)
            log.until_all_are_served(SECONDS / (KILLS + 1))
        except BaseException:
            server.kill()
            raise
        finally:
            ended.set()
        for task in running:
            task.result()
    assert server.end() == 0
    assert log.faults == [], "".join([*errors, server.errors])
    with Ledger(Workspace(workspace / "reviews").project("soak").ledger) as ledger:
        stored = [(j.reviewer, j.id, str(j.verdict)) for j in ledger.judgements()]
        assert len(ledger.history()) == len(stored), "a judgement was stored twice"
    assert log.stored <= set(stored), "a judgement that was acknowledged is lost"
    assert set(stored) <= (+log.sent).keys(), "a judgement that nobody made is stored"
    by = {id_: reviewer for reviewer, id_, _ in stored}
    assert len(by) == len(stored), "two reviewers judged one document"
    assert all(by[id_] != reviewer for reviewer, id_ in log.refused), "a verdict was refused, and none stood"


def _review(address: str, name: str, log: Log, ended: threading.Event) -> None:
    """Sign in and judge through the page's own forms; requests hit by a kill may be stored or not, and are
    retried."""
    chance = random.Random(name)
    with httpx.Client(base_url=address, timeout=PATIENCE) as browser:
        for path, action, values in (
            ("/login", "/login", {"token": ADMIN}),
            ("/p/soak/judge", "/reviewer", {"name": name}),
        ):
            asked = form(_patiently(browser, "GET", path).text, action)
            _patiently(browser, "POST", action, asked | values)
        while not ended.is_set():
            try:
                page = browser.get("/p/soak/judge")
                if page.status_code != 200 or 'id="verdict"' not in page.text:
                    log.faults.append(f"{name}: {page.status_code} {page.headers.get('location', '')}")
                    return
                values = form(page.text, "/judge")
                verdict = chance.choice(("relevant", "not", "not", "maybe"))
                judgement = name, values["id"], verdict
                log.sent[judgement] += 1
                answer = browser.post("/p/soak/judge", data=values | {"verdict": verdict})
            except httpx.TimeoutException as e:
                log.faults.append(f"{name}: no answer ({type(e).__name__})")
                return
            except httpx.TransportError:
                ended.wait(0.2)  # the server was killed
                continue
            if answer.status_code == 303:
                log.stored.add(judgement)
                log.waited.discard(name)
            elif answer.status_code == 409:  # after a kill, another reviewer got the document and was faster
                log.sent[judgement] -= 1
                log.refused.add((name, values["id"]))
            else:
                log.faults.append(f"{name}: a verdict was answered with {answer.status_code}")
            ended.wait(chance.uniform(0, 0.1))


def _patiently(
    browser: httpx.Client, method: str, path: str, data: dict[str, str] | None = None
) -> httpx.Response:
    """Retry while the server is down, as a person would."""
    for _ in range(100):
        with contextlib.suppress(httpx.TransportError):
            return browser.request(method, path, data=data)
        time.sleep(0.2)
    raise AssertionError(f"{path} was not answered")


def _stall(address: str, log: Log, ended: threading.Event) -> None:
    """Keep half-sent requests open from another address; the server must still answer that they are too slow."""
    host, port = urlsplit(address).hostname, urlsplit(address).port
    headers = (
        f"Host: {host}:{port}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 2000"
    )
    head = f"POST /login HTTP/1.1\r\n{headers}\r\n\r\nto".encode()
    waiting: list[socket.socket] = []
    while not ended.is_set():
        with contextlib.suppress(OSError):
            while len(waiting) < STALLED:
                opened = socket.create_connection((str(host), int(port or 0)), 5, ("127.0.0.2", 0))
                opened.sendall(head)
                opened.setblocking(False)
                waiting.append(opened)
        waiting = [one for one in waiting if not _is_closed(one, log)]
        ended.wait(0.1)
    for one in waiting:
        one.close()


def _is_closed(one: socket.socket, log: Log) -> bool:
    try:
        while answer := one.recv(4096):
            if b" 408 " in answer:
                log.waited.discard("staller")
    except BlockingIOError:
        return False
    except OSError:
        pass
    one.close()
    return True


def _evaluate(address: str, log: Log, ended: threading.Event) -> None:
    """Request evaluations that take a few tenths of a second each (30 measures, ties in all orders), two at a time."""
    topics, documents = [f"q{n}" for n in range(50)], range(200)
    body = json.dumps({
        "qrels": {q: {f"d{m}": m % 2 for m in documents} for q in topics},
        "runs": {
            str(r): {q: {f"d{m}": (m * 7919 + r) % 10 for m in documents} for q in topics} for r in range(10)
        },
        "measures": [f"nDCG@{k}" for k in range(1, 31)], "ties": True, "intervals": True,
    })  # fmt: skip
    headers = {"authorization": f"Bearer {READER}", "content-type": "application/json"}

    def ask() -> None:
        with httpx.Client(base_url=address, timeout=PATIENCE, headers=headers) as client:
            while not ended.is_set():
                try:
                    answer = client.post("/v1/evaluate", content=body)
                except httpx.TransportError:
                    ended.wait(0.2)
                    continue
                if answer.status_code == 200:
                    log.waited.discard("evaluator")
                elif (
                    answer.status_code != 504
                ):  # it may exceed its time on a busy machine, but not every time
                    log.faults.append(
                        f"an evaluation was answered with {answer.status_code}: {answer.text[:200]}"
                    )
                    return

    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(ask) for _ in range(2)]:
            each.result()
