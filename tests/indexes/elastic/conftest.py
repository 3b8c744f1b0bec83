from collections.abc import Iterator

import pytest

from tests.indexes.elastic.recorder import Recorder, recording


@pytest.fixture
def server() -> Iterator[tuple[str, type[Recorder]]]:
    """Give the address of a server that records what it is sent, and the record."""
    with recording() as running:
        yield running
