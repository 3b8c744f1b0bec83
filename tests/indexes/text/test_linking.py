"""Links to posting lists: which files are flushed, and which need no second flush."""

from __future__ import annotations

from pathlib import Path

import pytest

from indexes import text_backend
from indexes.disk import writing
from indexes.text.postings import NAME


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files and folders that are flushed."""
    names: list[str] = []
    monkeypatch.setattr(writing, "sync", lambda path: names.append(path.name))
    return names


def write(scratch: Path, number: int) -> Path:
    """Write a file of posting lists with unique content, and nothing else in the scratch folder."""
    for old in scratch.iterdir():
        old.unlink()
    path = scratch / f"{number:032x}.postings"
    path.write_bytes(bytes([number]) * 64)
    return path


def test_a_link_to_a_flushed_file_is_not_flushed_but_a_new_file_by_its_number_is(
    tmp_path: Path, flushed: list[str]
) -> None:
    scratch, durable = tmp_path / "live", set[text_backend.Identity]()
    scratch.mkdir()

    def linked(generation: str) -> list[str]:
        def snapshot(target: Path) -> None:
            for path in scratch.iterdir():
                (target / path.name).hardlink_to(path)

        flushed.clear()
        text_backend._linked(tmp_path, generation, snapshot, NAME, durable)
        for path in (tmp_path / "text" / generation).iterdir():
            path.unlink()  # as when a generation is deleted
        return [name for name in flushed if NAME.fullmatch(name)]

    first = write(scratch, 0)
    number = first.stat().st_ino
    assert linked("1") == [first.name]
    assert linked("2") == []
    for n in range(1, 50):
        if (path := write(scratch, n)).stat().st_ino == number:
            break
    else:
        pytest.skip("this file system does not use the numbers of deleted files again")
    assert linked("3") == [path.name]
