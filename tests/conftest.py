from __future__ import annotations

import asyncio
import fcntl
import inspect
import os
import shutil
from pathlib import Path

# Before any library is loaded:
os.environ["HF_HUB_OFFLINE"] = "1"  # tests use no network
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the workers' threads would wait for each other's cores
os.environ["LINKER_TRUSTED_HOSTS"] = os.devnull  # the user's own file of trusted hosts is ignored
if (MEMORY := Path("/dev/shm")).is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
    # a commit syncs many files, which is slow on disk
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.elastic_server import Product

# tests must not fail just because a loaded machine is slow
settings.register_profile("linker", deadline=None)
settings.load_profile("linker")


@pytest.fixture(scope="session")
def elastic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of a real Elasticsearch that all tests share; if there is none, skip, or fail under CI=true.

    LINKER_ELASTIC_TEST_URL names a running one.
    """
    from tests.elastic_server import ELASTICSEARCH

    yield from _server(ELASTICSEARCH, os.environ.get("LINKER_ELASTIC_TEST_URL"), tmp_path_factory)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collect in one worker first: in a fresh clone it compiles 700 files, which the others then only load."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    folders: pytest.TempPathFactory = session.config._tmp_path_factory  # type: ignore[attr-defined]  # no fixtures yet
    with (folders.getbasetemp().parent / "collecting").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function to its end."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def opensearch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of a real OpenSearch, as `elastic` does; LINKER_OPENSEARCH_TEST_URL names a running one."""
    from tests.opensearch_server import OPENSEARCH

    yield from _server(OPENSEARCH, os.environ.get("LINKER_OPENSEARCH_TEST_URL"), tmp_path_factory)


def _server(product: Product, running: str | None, folders: pytest.TempPathFactory) -> Iterator[str]:
    from tests import elastic_server

    if running:
        yield running
        return
    elastic_server.require(product)
    base = folders.getbasetemp()
    with elastic_server.shared(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base, product) as url:
        yield url
