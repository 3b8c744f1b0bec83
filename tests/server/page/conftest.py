import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.server.page.chromium import chromium
from tests.server.page.support import client, make_review


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the review "floods", which tests do not change."""
    folder = tmp_path_factory.mktemp("reviews")
    make_review(folder)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of the folder for one test."""
    return Path(shutil.copytree(made, tmp_path / "reviews"))


@pytest.fixture
def browser(folder: Path) -> Iterator[TestClient]:
    """A browser at the page of that folder."""
    with client(folder) as opened:
        yield opened


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    """Chromium, for a module: its event loop must be gone before another module runs one."""
    with chromium() as opened:
        yield opened
