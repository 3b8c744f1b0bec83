"""Indexes on each kind of server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from indexes.elastic.client import PRODUCTS
from linker import building
from linker.engine import Engine
from tests.contract.cluster import addresses
from tests.helpers import HashEncoder

Make = Callable[..., Engine]


@pytest.fixture(params=tuple(PRODUCTS))
def server(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A server's key, and where one runs."""
    return request.param, request.getfixturevalue(request.param)


@pytest.fixture
def address(server: tuple[str, str]) -> Iterator[Callable[[], str]]:
    key, url = server
    with addresses(url, "remote", key) as new:
        yield new


@pytest.fixture
def make(address: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make an empty index on the cluster; `vectors` "none" leaves out the encoder."""
    monkeypatch.setattr(building, "load_encoder", lambda name, **_: HashEncoder())
    monkeypatch.setenv("LINKER_ELASTIC_TIMEOUT", "60")

    def made(vectors: str = "flat", **options: Any) -> Engine:
        where = address()
        building.create(where, encoder="none" if vectors == "none" else "hash", vectors=vectors, **options)
        return Engine(Path(where), encoder=HashEncoder())

    return made
