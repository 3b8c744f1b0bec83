"""Uploaded files: safe names, nothing half-written, nothing overwritten."""

import errno
import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linker.base.errors import InputError
from linker.review.project import Project, Workspace
from linker.review.uploads import SUFFIXES, safe_name, store, stored


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Workspace(tmp_path).create("Floods")


def test_a_file_is_stored_and_no_other_is_overwritten(project: Project) -> None:
    first = store(project, "Größe der Flut.CSV", io.BytesIO(b"id,text\n1,a\n"))
    second = store(project, "Größe der Flut.CSV", io.BytesIO(b"id,text\n2,b\n"))
    assert [p.name for p in stored(project)] == ["Groe-der-Flut-2.csv", "Groe-der-Flut.csv"]
    assert (first.read_bytes(), second.read_bytes()) == (b"id,text\n1,a\n", b"id,text\n2,b\n")


@pytest.mark.parametrize("refusal", [errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK])
def test_a_disk_without_hard_links_stores_it_too(
    project: Project, monkeypatch: pytest.MonkeyPatch, refusal: int
) -> None:
    def refused(*_: object) -> None:
        raise OSError(refusal, os.strerror(refusal))

    monkeypatch.setattr(Path, "hardlink_to", refused)
    for number in range(2):
        store(project, "x.csv", io.BytesIO(b"%d" % number))
    assert {p.name: p.read_bytes() for p in project.uploads.iterdir()} == {"x.csv": b"0", "x-2.csv": b"1"}


def test_file_is_recorded_with_role_or_not_stored(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    store(project, "a.csv", io.BytesIO(b"a"), "articles")
    assert project.about["roles"] == {"a.csv": "articles"}
    (project.own_folder / "project.json").write_text("{")
    with pytest.raises(InputError, match="is damaged"):
        store(project, "b.csv", io.BytesIO(b"b"))
    assert [p.name for p in stored(project)] == ["a.csv"]


def test_a_link_among_the_uploads_is_not_followed(project: Project, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("id,text\n1,secret\n")
    (project.uploads / "x.csv").symlink_to(tmp_path / "secret.csv")
    assert stored(project) == []


@pytest.mark.parametrize(
    "name", ["../../etc/cron.d/x.csv", "..\\..\\x.csv", "/abs/x.csv", ".x.csv", "-rf.csv"]
)
def test_no_name_leads_out_of_the_folder(project: Project, name: str) -> None:
    path = store(project, name, io.BytesIO(b"id,text\n"))
    assert path.parent == project.uploads
    assert path.name in {"x.csv", "rf.csv"}


@pytest.mark.parametrize("name", ["x.exe", "x", "x.csv.exe", "x.xls", "", "csv", "x.xlsx.gz", "x.pdf"])
def test_other_kinds_are_refused(project: Project, name: str) -> None:
    with pytest.raises(InputError, match="CSV"):
        store(project, name, io.BytesIO(b"data"))
    assert stored(project) == []


def test_an_empty_file_is_refused(project: Project) -> None:
    with pytest.raises(InputError, match="is empty"):
        store(project, "x.csv", io.BytesIO())
    assert list(project.uploads.iterdir()) == []


def test_a_full_disk_leaves_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"cannot store x\.csv: No space left"):
        store(project, "x.csv", io.BytesIO(b"id,text\n"))
    assert list(project.uploads.iterdir()) == []


@given(st.text(max_size=300), st.sampled_from(SUFFIXES))
def test_every_name_becomes_a_plain_one(stem: str, suffix: str) -> None:
    safe, found = safe_name(stem + suffix)
    assert found == suffix
    assert safe.isascii()
    assert not set(safe) & set("/\\ \0\n")
    assert 0 < len(safe) <= 80
