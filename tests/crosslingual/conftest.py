"""Shared fixtures for tests of linking across languages."""

from collections.abc import Iterator

import pytest

from linker.crosslingual.ranking import folds


@pytest.fixture(scope="module")
def divided_once() -> Iterator[None]:
    """Divide known links into folds once, which takes a fifth of the time, for modules that do not need more divisions.

    The other divisions only hash the pages' contents with another number.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folds, "MOST", 1)
        yield
