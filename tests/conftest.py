import os

os.environ["HF_HUB_OFFLINE"] = "1"  # before any model library is loaded: tests use no network
os.environ["LINKER_TRUSTED_HOSTS"] = os.devnull  # the user's own file of trusted hosts stays out of it

from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("linker", deadline=None)  # no test fails for being slow on a loaded machine
settings.load_profile("linker")


@pytest.fixture(scope="session")
def elastic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of a real Elasticsearch that all tests share; skip where there is none, fail under CI=true.

    LINKER_ELASTIC_TEST_URL names one that runs already.
    """
    from tests import elastic_server

    if running := os.environ.get("LINKER_ELASTIC_TEST_URL"):
        yield running
        return
    elastic_server.require()
    base = tmp_path_factory.getbasetemp()
    with elastic_server.shared(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) as url:
        yield url
