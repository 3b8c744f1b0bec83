"""Two small indexes, and a client of the service over them that needs no port."""

import time
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.testclient import TestClient

from indexes.interface import Document
from linker.engine import Engine, building
from linker.server.api.app import add_api, service_app
from linker.server.api.served import Served, Service
from linker.server.config import Limits, ServeConfig
from tests.helpers import HashEncoder, make_engine

BASE = "http://127.0.0.1:8000"
DOCUMENTS = [
    Document("a", "rain floods valencia", metadata={"lang": "en", "likes": 3}),
    Document("b", "voters elect parliament", "Portugal", {"lang": "en", "likes": 200}),
    Document("c", "volcano erupts in iceland", metadata={"lang": "de"}),
    Document("d/ü?#%41", "parliament debates rain", metadata={"lang": "de"}),
]


def make(folder: Path) -> Path:
    """Make the indexes "news" and "old" (BM25), and separately "dense" (an encoder that cannot be loaded by name)."""
    building.create(folder / "news", encoder="none")
    Engine(folder / "news").add(DOCUMENTS)
    building.create(folder / "old", encoder="none")
    folder = folder / "vectors"
    make_engine(folder / "dense", DOCUMENTS)
    return folder.parent


def client(*directories: Path, base: str = BASE, limits: Limits | None = None, **options: Any) -> TestClient:
    """Return a client of the service over indexes; it does not raise server errors."""
    app = service_app(ServeConfig.of(directories, limits=limits, page=False, **options))
    return TestClient(app, base_url=base, raise_server_exceptions=False)


def dense_client(folder: Path, name: str = "dense") -> TestClient:
    """Return a client of the service over the index "dense" with its encoder, optionally under another name."""
    service = Service(ServeConfig.of([folder / "news"]))
    engine = Engine(folder / "vectors" / "dense", encoder=HashEncoder())
    service.indexes = {name: Served(name, engine, service.pool, service.heavy)}
    return TestClient(add_api(FastAPI(), service), base_url=BASE, raise_server_exceptions=False)


def check_problem(answer: Any, status: int, code: str) -> str:
    """Check that a response is a problem (RFC 9457) of this kind, and return its detail."""
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (answer.status_code, body["status"], body["code"]) == (status, status, code), body
    assert body["request_id"] == answer.headers["x-request-id"]
    assert body["type"] == "about:blank"
    assert body["title"]
    assert "Traceback" not in answer.text
    detail: str = body["detail"]
    return detail


def ended(api: TestClient, job: dict[str, Any]) -> dict[str, Any]:
    """Wait for the end of a job and return its last state."""
    end = time.monotonic() + 600  # only bounds a hang: a loaded machine is slow
    while job["state"] in ("waiting", "running"):
        assert time.monotonic() < end
        time.sleep(0.05)
        job = api.get(f"/v1/jobs/{job['id']}").json()
    return job
