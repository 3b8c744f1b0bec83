"""Who is let in, what is refused, and how this is logged."""

import asyncio
import functools
import json
import logging
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient

from linker.base.errors import InputError
from linker.engine.engine import Engine
from linker.server.api import children, evaluating, logs
from linker.server.api.guard import DOCS, HEADERS, policy_factory
from linker.server.api.pool import OWNER, FairPool
from linker.server.api.routes.common import MOST_VALUES
from linker.server.api.served import Service
from linker.server.config import Limits, ServeConfig
from linker.server.errors import problem_of
from linker.server.guard.access import MOST, TRIES, Access, Rates
from linker.server.guard.admission import RefusedError
from linker.server.guard.gate import Gate
from linker.server.guard.tokens import Tokens, digest_of
from tests.server.api.support import BASE, check_problem, client, ended

READ, WRITE, ADMIN = "r" * 20, "w" * 20, "a" * 20
FILE = f"# ours\n{READ} read dashboard\n\n{WRITE} read,write intake\n{ADMIN}\n"


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(FILE)
    path.chmod(0o600)
    return path


@pytest.fixture
def closed(folder: Path, tokens: Path) -> Iterator[TestClient]:
    """The service with tokens."""
    with client(folder / "news", token_file=tokens) as opened:
        yield opened


async def test_a_request_that_the_end_of_the_server_cancels_may_be_asked_again(folder: Path) -> None:
    sent: list[Any] = []

    async def forever(*_: Any) -> Any:
        await asyncio.sleep(600)

    async def send(message: Any) -> None:
        sent.append(message)

    service = Service(ServeConfig((folder / "news",)))
    guard = Gate(forever, service.config, policy_factory(service))
    scope = {"type": "http", "method": "GET", "path": "/v1/indexes", "raw_path": b"/v1/indexes",
             "headers": [(b"host", b"127.0.0.1")], "client": ("127.0.0.1", 1)}  # fmt: skip
    task = asyncio.create_task(guard(scope, forever, send))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sent[0]["status"] == 503
    assert orjson.loads(sent[1]["body"])["code"] == "ending"


REQUESTS = [
    ("GET", "/v1/indexes", None, "read"), ("GET", "/v1/documents/a", None, "read"), ("GET", "/metrics", None, "read"),
    ("POST", "/v1/search", {"text": "rain"}, "read"),
    ("POST", "/v1/evaluate", {"qrels": "1 0 a 1\n", "runs": {"x": "1 Q0 a 1 1 x\n"}}, "read"),
    ("GET", "/v1/models", None, "read"), ("GET", "/v1/jobs", None, "read"),
    ("PUT", "/v1/documents/a", {"text": "x"}, "write"), ("DELETE", "/v1/documents/b", None, "write"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "scope"), REQUESTS)
def test_every_route_asks_for_its_scope(
    closed: TestClient, method: str, path: str, body: Any, scope: str
) -> None:
    def ask(headers: dict[str, str]) -> Any:
        return closed.request(method, path, json=body, headers=headers)

    for headers in ({}, bearer("x" * 20), bearer(""), {"authorization": f"Basic {ADMIN}"}, bearer(READ[:-1])):
        answer = ask(headers)
        check_problem(answer, 401, "not-signed-in")
        assert answer.headers["www-authenticate"].startswith("Bearer")
    if scope == "write":
        assert "'write'" in check_problem(ask(bearer(READ)), 403, "scope-missing")
    assert ask(bearer(READ if scope == "read" else WRITE)).is_success


def test_the_interactive_documentation_needs_neither_token_nor_network(closed: TestClient) -> None:
    pytest.importorskip("fastapi_offline")
    page = closed.get("/docs")
    parts = re.findall(r'(?:src|href)="(?!data:)([^"]+)"', page.text)
    assert {f"/{part}" for part in parts} | {"/docs"} == set(DOCS)
    for part in parts:
        answer = closed.get(f"/{part}")
        assert answer.status_code == 200 and "script-src 'self';" in answer.headers["content-security-policy"]
    assert closed.get("/docs/start.js").text.startswith('SwaggerUIBundle({url: "openapi.json"')
    assert closed.get("/docs/other.js").status_code == 401


def test_no_route_is_forgotten(closed: TestClient) -> None:
    closed.headers = {}
    for path, methods in closed.get("/openapi.json").json()["paths"].items():
        for method in methods:
            expected = 200 if path in ("/health", "/ready") else 401
            assert closed.request(method, path.replace("{id}", "a")).status_code == expected, path


def test_a_token_cannot_be_found_by_trying(closed: TestClient) -> None:
    assert closed.get("/v1/indexes", headers=bearer(READ)).is_success
    statuses = [closed.get("/v1/indexes", headers=bearer(f"{n:020}")).status_code for n in range(25)]
    assert statuses[:20] == [401] * 20
    assert set(statuses[21:]) == {429}
    answer = closed.get("/v1/indexes", headers=bearer(ADMIN))  # a valid token found by guessing
    check_problem(answer, 429, "too-many-requests")
    assert 0 < int(answer.headers["retry-after"]) <= 1 / TRIES[0]
    # this token was used from this address before
    assert closed.get("/v1/indexes", headers=bearer(READ)).is_success


def test_many_addresses_together_cannot_find_a_token_either(tokens: Path) -> None:
    access = Access.of(tokens, page=False)
    assert access.principal(READ, "known") is not None
    with pytest.raises(RefusedError):
        for number in range(1000):
            access.principal("x" * 20, f"address {number}")
    with pytest.raises(RefusedError):
        access.principal(ADMIN, "new")
    assert access.principal(READ, "known") is not None


def test_right_tokens_take_no_tries_and_an_admins_may_do_everything(closed: TestClient, tokens: Path) -> None:
    access = Access.of(tokens, page=False)
    assert all(access.principal(ADMIN, f"address {number}") for number in range(1000))
    assert closed.put("/v1/documents/a", json={"text": "x"}, headers=bearer(ADMIN)).is_success
    assert READ not in repr(Tokens.read(tokens))
    assert len(Access.of(tokens, page=True).tokens.opening) == 1  # type: ignore[union-attr]  # there are tokens
    tokens.write_text(f"{READ} read\n")
    with pytest.raises(InputError, match="admin"):  # the page needs such a token
        Access.of(tokens, page=True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("short read\n", "fewer than 16"), (f"{READ} read,all\n", "scopes from"), (f"{READ} read a b\n", "TOKEN"),
        (f"{READ}\n{READ} read\n", "twice"), ("# nothing\n", "no token"), (f"{READ} read a/b\n", "a name of"),
    ],
)  # fmt: skip
def test_a_token_file_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(InputError, match=said) as raised:
        Tokens.read(path)
    assert READ not in str(raised.value)


def test_a_token_file_is_nobody_elses(tmp_path: Path, tokens: Path) -> None:
    for mode in (0o604, 0o660, 0o602, 0o622):
        tokens.chmod(mode)
        with pytest.raises(InputError, match="chmod 600"):
            Tokens.read(tokens)
    tokens.chmod(0o640)  # a service manager gives secrets to a group
    assert len(Tokens.read(tokens).known) == 3
    made = Tokens.read(tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600
    assert made.holder(digest_of((tmp_path / "new").read_text().strip())) is not None


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "169.254.1.1", "", "localhost.evil"]
)
def test_a_rebound_name_is_not_answered(api: TestClient, host: str) -> None:
    for path in ("/v1/indexes", "/health", "/metrics", "/openapi.json", "/nowhere"):
        answer = api.get(path, headers={"host": host})
        check_problem(answer, 421, "unknown-host")
        assert "--allow-host" in answer.text


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:9", "null", "http://["])
def test_a_page_of_another_site_changes_nothing(api: TestClient, origin: str) -> None:
    for method, path in (("POST", "/v1/search"), ("PUT", "/v1/documents/a"), ("POST", "/v1/documents:bulk")):
        answer = api.request(method, path, json={"text": "x"}, headers={"origin": origin})
        check_problem(answer, 403, "foreign-origin")
    assert api.post("/v1/search", json={"text": "x"}, headers={"origin": BASE}).is_success


def test_behind_a_proxy_its_header_signs_in(folder: Path) -> None:
    with client(folder / "news", proxy_header="X-User", allowed=("news.example",)) as api:
        check_problem(api.get("/v1/indexes"), 401, "not-signed-in")
        headers = {"x-user": "ana", "host": "news.example", "origin": "https://news.example"}
        assert api.put("/v1/documents/x", json={"text": "x"}, headers=headers).status_code == 201
        assert api.get("/health").is_success


def test_every_answer_has_the_headers_and_an_id(api: TestClient) -> None:
    for path in ("/v1/indexes", "/nowhere", "/v1/documents/none", "/health"):
        headers = api.get(path, headers={"x-request-id": "my-id.1"}).headers
        assert HEADERS.items() <= dict(headers).items()
        assert headers["x-request-id"] == "my-id.1"
        assert "server" not in headers
    ids = {
        api.get("/health", headers={"x-request-id": bad}).headers["x-request-id"]
        for bad in ("", "a b", "x" * 129)
    }
    assert len(ids) == 3
    assert all(len(each) == 32 for each in ids)
    assert api.put("/v1/indexes").headers["allow"] == "GET"


def test_a_body_that_is_too_large_is_refused(folder: Path) -> None:
    with client(folder / "news", limits=Limits(body=2000, bulk=5000)) as api:
        check_problem(api.post("/v1/search", json={"text": "x" * 3000}), 413, "too-large")

        def stream(size: int) -> Iterator[bytes]:
            yield from (b" " * 500 for _ in range(size))

        kind = {"content-type": "application/json"}
        check_problem(api.post("/v1/search", content=stream(10), headers=kind), 413, "too-large")
        check_problem(
            api.post("/v1/search", content=b"{}", headers=kind | {"content-length": "9" * 30}),
            413,
            "too-large",
        )
        kind = {"content-type": "application/x-ndjson"}
        assert api.post("/v1/documents:bulk", content=stream(8), headers=kind).is_success
        answer = api.post("/v1/documents:bulk", content=stream(20), headers=kind)
        check_problem(answer, 413, "too-large")
        assert answer.json()["report"]["added"] == 0


def test_each_client_has_its_rate(folder: Path, tokens: Path) -> None:
    with client(folder / "news", token_file=tokens, limits=Limits(rate=0.01)) as api:
        assert api.get("/v1/indexes", headers=bearer(READ)).is_success
        answer = api.get("/v1/indexes", headers=bearer(READ))
        check_problem(answer, 429, "too-many-requests")
        assert 90 < int(answer.headers["retry-after"]) <= 100
        assert api.get("/v1/indexes", headers=bearer(WRITE)).is_success
        assert all(api.get("/health").is_success for _ in range(5))


def test_a_bucket_fills_with_time_and_forgets_old_clients() -> None:
    now = [0.0]
    rates = Rates(2.0, clock=lambda: now[0])
    assert [rates.wait("a") for _ in range(5)] == [0, 0, 0, 0, 1]
    now[0] = 1.0
    assert [rates.wait("a") for _ in range(3)] == [0, 0, 1]
    for number in range(MOST):
        rates.wait(str(number))
    assert rates.wait("a") == 0
    assert len(rates._buckets) == MOST


def test_an_answer_that_takes_too_long_is_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "search", lambda *_, **__: time.sleep(0.5))
    with client(folder / "news", limits=Limits(seconds=0.05)) as api:
        check_problem(api.post("/v1/search", json={"text": "x"}), 504, "timeout")


async def test_more_than_may_wait_are_refused() -> None:
    pool = FairPool(1, 2, "test")
    done = await asyncio.gather(
        *(pool.run(lambda: time.sleep(0.05)) for _ in range(5)), return_exceptions=True
    )
    assert pool.pending == 0
    assert done[:3] == [None] * 3
    assert [problem_of(each).code for each in done[3:] if isinstance(each, Exception)] == ["overloaded"] * 2


async def test_one_owner_never_has_all_threads_and_waits_for_nobody_but_itself() -> None:
    pool, order, hold = FairPool(2, 10, "test"), list[str](), threading.Event()

    async def ask(owner: str, call: Callable[[], object]) -> None:
        OWNER.set(owner)
        await pool.run(call)
        order.append(owner)

    async with asyncio.TaskGroup() as group:
        for _ in range(6):
            group.create_task(ask("greedy", lambda: hold.wait(30)))
        await asyncio.sleep(0)
        await asyncio.gather(*(ask("other", lambda: None) for _ in range(3)))
        hold.set()
    assert pool.pending == 0
    assert order == ["other"] * 3 + ["greedy"] * 6


async def test_who_gives_up_leaves_no_work_behind_and_the_others_alone() -> None:
    pool, begun, hold = FairPool(1, 9, "test"), list[int](), threading.Event()

    def work(number: int) -> None:
        begun.append(number)
        hold.wait(30)

    each = asyncio.create_task(pool.run_each(functools.partial(work, number) for number in range(9)))
    while not begun:
        await asyncio.sleep(0.001)
    each.cancel()
    hold.set()
    await pool.run(lambda: None)
    assert (begun, pool.pending) == ([0], 0)

    hold.clear()
    first = asyncio.create_task(pool.run(lambda: hold.wait(30)))
    second = asyncio.create_task(pool.run(lambda: begun.append(2)))
    third = asyncio.create_task(pool.run(lambda: 7))
    await asyncio.sleep(0)  # one is running, the others wait
    second.cancel()
    first.cancel()
    assert pool.pending == 3  # the first one's thread keeps running
    hold.set()
    assert await third == 7
    assert (begun, pool.pending) == ([0], 0)


def test_an_evaluation_has_a_process_of_its_own_which_ends_with_the_request(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    children, start = list[asyncio.subprocess.Process](), asyncio.create_subprocess_exec

    async def noted(*command: str, **options: Any) -> asyncio.subprocess.Process:
        others = {3: "import time; time.sleep(60)", 4: "import os; os.abort()"}
        script = others.get(len(children))
        children.append(await start(*([sys.executable, "-c", script] if script else command), **options))
        return children[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    large = {"qrels": "1 0 a 1\n" + " " * evaluating.SMALL, "runs": {"x": "1 Q0 a 1 1 x\n"}}
    small = large | {"qrels": "1 0 a 1\n"}
    with client(folder / "news") as api:
        expected = api.post("/v1/evaluate", json=small)
        assert not children
        answer = api.post("/v1/evaluate", json=large)
        assert expected.is_success and answer.json() == expected.json()
        check_problem(api.post("/v1/evaluate", json=large | {"level": 0}), 422, "invalid-request")
        check_problem(api.post("/v1/evaluate", json=large | {"runs": {"x": "1 Q0\n"}}), 400, "bad-input")
    with client(folder / "news", limits=Limits(seconds=2)) as api:
        check_problem(api.post("/v1/evaluate", json=large), 504, "timeout")
    with client(folder / "news") as api:
        check_problem(api.post("/v1/evaluate", json=large), 503, "overloaded")
    assert [child.returncode for child in children[3:]] == [-signal.SIGKILL, -signal.SIGABRT]


def test_a_large_body_is_read_here_only_once_it_is_known_to_fit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a read-only token could block everybody: 16 MiB of small values take seconds to parse."""
    read, loads = list[int](), orjson.loads

    def noted(body: bytes) -> Any:
        read.append(len(body))
        return loads(body)

    async def run(module: str, *arguments: str, body: bytes) -> bytes:
        if arguments[-1].endswith("search") and b"other" not in body:
            return await in_a_process(module, *arguments, body=body)
        found = children.read(body, *arguments)  # in this process: starting one takes seconds
        read.remove(len(body))
        return found

    in_a_process = children.run
    monkeypatch.setattr(children, "run", run)
    monkeypatch.setattr(orjson, "loads", noted)
    filler = b" " * children.LARGE
    side = {"language": "fr", "documents": [{"id": "a", "text": "x"}]}
    known: dict[str, dict[str, Any]] = {
        "/v1/search": {"text": "rain"},
        "/v1/rerank": {"query": "rain", "texts": ["rain", "sun"]},
        "/v1/embeddings": {"input": "rain"},
        "/v1/find": {"seeds": [{"id": "s", "text": "rain"}], "limit": 5},
        "/v1/group": {"corpus": side},
        "/v1/link": {"source": side, "target": side, "method": "hapax"},
    }
    with client(folder / "news") as api:
        api.headers["content-type"] = "application/json"
        for path, fits in known.items():
            misfit = orjson.dumps({**fits, "other": [[]] * 3})
            expected = api.post(path, content=misfit)
            read.clear()
            answer = api.post(path, content=misfit + filler)
            detail = check_problem(answer, 422, "invalid-request")
            assert (detail, answer.json()["errors"]) == (expected.json()["detail"], expected.json()["errors"])
            assert not [size for size in read if size > children.LARGE], path
        read.clear()
        lists: dict[str, dict[str, Any]] = {
            "/v1/link": {"links": [["a", "a"]] * 30_000},
            "/v1/find": {"judgements": [{"id": "a", "verdict": "not"}] * 12_000},
        }
        for path, more in lists.items():
            long = orjson.dumps(known[path] | more)
            assert len(long) > children.LARGE
            assert ended(api, api.post(path, content=long).json())["state"] == "done"
        per_pair = {"unit": "pairs", "order": "feedback"}
        misused = orjson.dumps(known["/v1/find"] | per_pair) + filler
        check_problem(api.post("/v1/find", content=misused), 400, "bad-input")
        many = {"lang": ["en"] * (MOST_VALUES + 1)}
        for where in (many, {"lang": {"=": [many]}}, [*many["lang"]]):
            check_problem(api.post("/v1/search", json={"text": "x", "where": where}), 422, "invalid-request")
        assert not [size for size in read if size > children.LARGE]
        check_problem(api.post("/v1/search", content=filler + b"{"), 400, "not-json")
        body = orjson.dumps(known["/v1/search"])
        assert (
            api.post("/v1/search", content=body + filler).json()
            == api.post("/v1/search", content=body).json()
        )


def test_the_log_holds_no_text_and_no_secret(
    closed: TestClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "Geheimnis"

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(secret)

    with caplog.at_level(logging.INFO, "linker.service"):
        headers = bearer(WRITE) | {"x-request-id": "known"}
        closed.post("/v1/search", json={"text": secret, "where": f"{secret}=x"}, headers=headers)
        closed.put(f"/v1/documents/{secret}?index=news", json={"text": secret}, headers=headers)
        closed.get(f"/{secret}?q={secret}", headers=headers)
        closed.get("/v1/indexes", headers=bearer(secret))
        monkeypatch.setattr(Engine, "search", fail)
        closed.post("/v1/search", json={"text": secret}, headers=headers)
    for kind in ("text", "json"):
        lines = [logs._Formatter(kind).format(record) for record in caplog.records]
        assert len(lines) == 6
        whole = "\n".join(lines)
        assert secret not in whole
        assert WRITE not in whole
        assert "known" in whole
        assert "intake" in whole
        assert "RuntimeError" in whole
        assert "test_guard.py" in whole
    entry = json.loads(lines[0])
    assert (entry["route"], entry["status"], entry["token"]) == ("/v1/search", 400, "intake")
    assert entry["ms"] >= 0


def test_metrics_count_what_was_answered(api: TestClient) -> None:
    api.post("/v1/search", json={"texts": ["a", "b"]})
    api.post("/v1/search", json={"text": "a", "k": 0})
    api.get("/v1/documents/none")
    text = api.get("/metrics").text
    for line in (
        'linker_requests_total{method="POST",route="/v1/search",status="200"} 1.0',
        'linker_requests_total{method="POST",route="/v1/search",status="422"} 1.0',
        'linker_requests_total{method="GET",route="/v1/documents/{id:path}",status="404"} 1.0',
        'linker_request_seconds_count{route="/v1/search"} 2.0',
        'linker_queries_total{index="news"} 2.0',
        'linker_documents{index="news"} 4.0',
        'linker_generation{index="news"} 1.0',
        "linker_pending_calls 0.0",
    ):
        assert line in text
    (memory,) = (line for line in text.splitlines() if line.startswith("linker_resident_memory_bytes"))
    assert float(memory.split()[1]) > 1 << 20
