"""Reviews on the disk: what `linker serve DIR` finds in a directory, and the names it refuses."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linker.building import create
from linker.errors import InputError
from linker.review.project import ABOUT, Workspace, key_of


def test_a_new_folder_offers_to_make_a_review(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "new" / "reviews")
    assert workspace.single is None
    assert workspace.projects == []
    project = workspace.create("  Floods   2026 ")
    assert (project.key, project.name, project.ready) == ("floods-2026", "Floods 2026", False)
    assert Workspace(workspace.directory).project("floods-2026") == project
    assert project.about["created"]


def test_a_review_s_folder_and_an_index_are_opened_directly(tmp_path: Path) -> None:
    made = Workspace(tmp_path).create("Floods")
    create(made.index)
    alone = Workspace(tmp_path / "floods")
    assert alone.single == made
    index = Workspace(made.index).single
    assert index is not None
    assert (index.ledger, index.folder, index.ready) == (
        made.index.with_name("index.review.sqlite"),
        None,
        True,
    )
    with pytest.raises(InputError, match="without a review's folder"):
        _ = index.uploads


def test_an_index_in_the_folder_is_a_review_too(tmp_path: Path) -> None:
    create(tmp_path / "news.index")
    (project,) = Workspace(tmp_path).projects
    assert project.name == "news.index"
    assert Workspace(tmp_path).project(project.key) == project


@pytest.mark.parametrize("name", ["", "  ", "x" * 81, "a\nb\0"])
def test_a_name_that_cannot_be_used_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="1 to 80 characters"):
        Workspace(tmp_path).create(name)


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.create("Größe")
    with pytest.raises(InputError, match="already"):
        workspace.create("größe")


def test_no_key_leads_out_of_the_folder(tmp_path: Path) -> None:
    create(tmp_path / "secret")
    workspace = Workspace(tmp_path / "reviews")
    for key in ("../secret", "..", ".", "/", str(tmp_path / "secret"), ""):
        with pytest.raises(InputError, match="there is no review"):
            workspace.project(key)


@given(st.text(max_size=100))
def test_every_name_gives_a_plain_folder_name(name: str) -> None:
    key = key_of(name)
    assert key.isascii()
    assert set(key) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert 0 < len(key) <= 64


def test_a_damaged_project_file_is_named(tmp_path: Path) -> None:
    project = Workspace(tmp_path).create("Floods")
    (tmp_path / "floods" / ABOUT).write_text("{")
    with pytest.raises(InputError, match=r"project\.json is damaged"):
        project.describe(name="x")


def test_a_file_is_no_workspace(tmp_path: Path) -> None:
    (tmp_path / "posts.csv").write_text("id,text\n")
    with pytest.raises(InputError, match="is a file"):
        Workspace(tmp_path / "posts.csv")


def test_deleting_takes_the_folder_alone(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    kept = workspace.create("kept")
    workspace.create("gone").delete()
    assert workspace.projects == [kept]
