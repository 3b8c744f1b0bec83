"""Ray on this machine, started once, and a corpus with unusable records."""

import gc
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from linker.engine.scaleout.cluster import connection, import_ray
from tests.helpers import write_corpus


@pytest.fixture(scope="package")
def ray() -> Iterator[Any]:
    """Ray on this machine with two workers, told that there is one GPU: it only counts them. Builds use it.

    LINKER_RAY_TEST_ADDRESS names a running one.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        # otherwise its workers yield to every other test, at a niceness of 15
        patch.setenv("RAY_worker_niceness", "0")
        if running := os.environ.get("LINKER_RAY_TEST_ADDRESS"):
            patch.setenv("RAY_ADDRESS", running)
        module = import_ray()
        with connection(module, cpus=2, gpus=1):
            yield module
        with warnings.catch_warnings():  # Ray never waits for the processes that it terminated
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two files, in which some records are not JSON and some ids are duplicated."""
    folder = tmp_path_factory.mktemp("corpora")
    paths = [write_corpus(folder / "a.jsonl", 500), write_corpus(folder / "b.jsonl", 130, seed=1, prefix="b")]
    lines = paths[0].read_text(encoding="utf-8").splitlines()
    for place in range(0, len(lines), 90):
        lines[place] = lines[place][:-20]
        lines[place + 1] = lines[place + 2]
    paths[0].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths
