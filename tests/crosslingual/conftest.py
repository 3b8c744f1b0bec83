"""Fixtures that the tests of linking across languages share."""

import pytest

from linker.crosslingual.ranking import folds


@pytest.fixture
def divided_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide known links into folds once: for tests of what does not depend on how often, in a fifth of the time.

    What fixtures of a module or session make first is made as users make it.
    """
    monkeypatch.setattr(folds, "MOST", 1)
