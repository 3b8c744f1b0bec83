"""Shared fixtures for tests of linking across languages."""

import pytest

from linker.crosslingual.ranking import folds


@pytest.fixture
def divided_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide known links into folds once, which takes a fifth of the time, for tests that do not need more divisions.

    Fixtures of a module or session that run earlier divide them as often as for users.
    """
    monkeypatch.setattr(folds, "MOST", 1)
