"""The API description is complete and accurate; no request, allowed or forbidden, causes a server error."""

import contextlib
import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks
from starlette.testclient import TestClient

from linker.server.api.app import ROUTES
from tests.server.api.support import client, dense_client
from tests.server.api.test_guard import bearer
from tests.server.page.chromium import served

CHECKS = [
    not_a_server_error, checks.status_code_conformance, checks.content_type_conformance,
    checks.response_schema_conformance,
]  # fmt: skip
EXAMPLES = 20  # requests per operation
PATIENCE = 60  # seconds: a loaded machine is slow, not wrong


@schemathesis.serializer("application/x-ndjson", "application/x-tar")
def _lines(_: Any, value: Any) -> bytes:
    return value.encode(errors="replace") if isinstance(value, str) else json.dumps(value).encode()


@pytest.fixture(scope="module")
def fuzzed(indexes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, dict[str, str]]]:
    """The description from a real server, and the headers that it requires."""
    with described_by(
        Path(shutil.copytree(indexes, tmp_path_factory.mktemp("fuzzed") / "indexes")), "news"
    ) as it:
        yield it


@pytest.fixture(scope="module")
def administered(
    indexes: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Any, dict[str, str]]]:
    """The same for a server of a folder in which indexes can be created."""
    with described_by(Path(shutil.copytree(indexes, tmp_path_factory.mktemp("made") / "indexes")), "") as it:
        yield it


@contextlib.contextmanager
def described_by(folder: Path, name: str) -> Iterator[tuple[Any, dict[str, str]]]:
    tokens = folder / "tokens"
    tokens.write_text("t" * 32)
    tokens.chmod(0o600)
    with served(folder / name, 0, str(folder / name), "--api", "--token-file", str(tokens)) as server:
        yield schemathesis.openapi.from_url(f"{server.address}/openapi.json"), bearer("t" * 32)
        server.end()
        assert " error " not in server.errors


@pytest.fixture(scope="module")
def described(indexes: Path) -> Any:
    return client(indexes / "news").get("/openapi.json").json()


STARTING = ("POST /v1/find", "POST /v1/group", "POST /v1/link")  # each accepted request starts a process
ENCODING = ("/v1/embeddings", "/v1/rerank")  # they need an index with an encoder


def labels() -> list[str]:
    """Return every operation of the API, as "METHOD path"."""
    app = FastAPI()
    for module in ROUTES:
        app.include_router(module.router)
    return [f"{method.upper()} {path}" for path, found in app.openapi()["paths"].items() for method in found]


@pytest.mark.parametrize("label", labels())
def test_what_is_described_is_what_happens(request: pytest.FixtureRequest, label: str) -> None:
    schema, headers = request.getfixturevalue("administered" if "{name}" in label else "fuzzed")
    (operation,) = (each.ok() for each in schema.get_all_operations() if each.ok().label == label)
    strategy = st.one_of(
        operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE),
        operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE),
    )

    @settings(
        max_examples=EXAMPLES // 5 if label in STARTING else EXAMPLES,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def ask(case: Any) -> None:
        answer = case.call(headers=headers, timeout=PATIENCE)
        case.validate_response(answer, checks=CHECKS, headers=headers)
        if "index" in (values := case.body if isinstance(case.body, dict) else case.query or {}):
            del values["index"]  # a made-up name gives 404, which says little
            case.validate_response(
                case.call(headers=headers, timeout=PATIENCE), checks=CHECKS[:1], headers=headers
            )

    ask()


def test_every_operation_and_field_is_described(described: Any) -> None:
    found = []
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            found.append(f"{method.upper()} {path}")
            assert operation["summary"]
            assert operation["description"], path
            assert operation["tags"]
            assert any(status.startswith("2") for status in operation["responses"])
            for parameter in operation.get("parameters", []):
                assert parameter.get("description"), (path, parameter["name"])
            for status, answer in operation["responses"].items():
                assert answer["description"], (path, status)
                if status.startswith(("4", "5")):
                    assert list(answer["content"]) == ["application/problem+json"], (path, status)
    assert found == labels()
    bodies = ("SearchRequest", "EvaluateRequest", "DocumentBody", "IndexDescription", "SearchAnswer")
    for name in bodies:
        schema = described["components"]["schemas"][name]
        assert schema["description"]


def test_examples_of_bodies_work(api: TestClient, folder: Path, described: Any) -> None:
    dense, all_of_them = dense_client(folder, "news"), client(folder)
    tried, numbers = set(), itertools.count()
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            for kind, content in operation.get("requestBody", {}).get("content", {}).items():
                for example in _examples(content):
                    data = example if isinstance(example, str) else json.dumps(example)
                    address = path.replace("{id}", "an-example").replace("{name}", f"example-{next(numbers)}")
                    asked = dense if path in ENCODING else all_of_them if "{name}" in path else api
                    answer = asked.request(method, address, content=data, headers={"content-type": kind})
                    assert answer.is_success, (path, example, answer.text)
                    tried.add(path)
    assert tried >= {"/v1/search", "/v1/documents/{id}", "/v1/documents:bulk", "/v1/evaluate"}


def _examples(content: Any) -> list[Any]:
    if "example" in content:
        return [content["example"]]
    return [example["value"] for example in content.get("examples", {}).values()]
