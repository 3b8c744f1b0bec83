import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from linker.server.api import logs
from tests.server.api.support import client, make


@pytest.fixture(autouse=True)
def log_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reset the log configuration left by another test's command."""
    monkeypatch.setattr(logs.log, "handlers", [])
    monkeypatch.setattr(logs.log, "propagate", True)


@pytest.fixture(scope="session")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the indexes "news", "old" and "vectors/dense", which tests do not change."""
    return make(tmp_path_factory.mktemp("indexes"))


@pytest.fixture
def folder(indexes: Path, tmp_path: Path) -> Path:
    """A copy of the folder for one test."""
    return Path(shutil.copytree(indexes, tmp_path / "indexes"))


@pytest.fixture
def api(folder: Path) -> Iterator[TestClient]:
    """The service over the index "news" in that copy."""
    with client(folder / "news") as opened:
        yield opened
