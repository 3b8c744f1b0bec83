"""Reviews on disk: the reviews that `linker serve DIR` finds in a directory, and the names it refuses."""

import errno
import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linker.base.errors import InputError
from linker.engine.building import create
from linker.review import project as projects
from linker.review.interface import Judgement
from linker.review.ledger import Ledger
from linker.review.ownership import ABOUT, MARK
from linker.review.project import Project, Workspace, key_of
from linker.review.uploads import store


def test_a_new_folder_offers_to_make_a_review(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "new" / "reviews")
    assert workspace.single is None
    assert workspace.projects == []
    project = workspace.create("  Floods   2026 ")
    assert (project.key, project.name, project.ready) == ("floods-2026", "Floods 2026", False)
    assert Workspace(workspace.directory).project("floods-2026") == project
    assert project.about["created"]


def test_a_review_s_folder_and_an_index_are_opened_directly(tmp_path: Path) -> None:
    project = Workspace(tmp_path).create("Floods")
    create(project.index)
    workspace = Workspace(tmp_path / "floods")
    assert workspace.single == project
    index = Workspace(project.index).single
    assert index is not None
    assert (index.ledger, index.folder, index.ready) == (
        project.index.with_name("index.review.sqlite"),
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
    with pytest.raises(InputError, match="1 to 80 printable characters"):
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


def test_a_file_is_no_workspace(tmp_path: Path) -> None:
    (tmp_path / "posts.csv").write_text("id,text\n")
    with pytest.raises(InputError, match="is a file"):
        Workspace(tmp_path / "posts.csv")


@pytest.fixture
def whole(tmp_path: Path) -> Project:
    """A review with everything that linker ever writes into its folder, whole or truncated by a kill."""
    project = Workspace(tmp_path / "reviews").create("Floods")
    create(project.index)
    create(project.own_folder / ".building-index")
    (project.own_folder / ".building-index" / "index.json").unlink(missing_ok=True)
    store(project, "posts.csv", io.BytesIO(b"id,text\n1,a\n"))
    (project.uploads / ".abc_1234.part").write_bytes(b"id,te")
    for name in ("review.sqlite", "story.review.sqlite", "links.sqlite", "groups.sqlite"):
        with Ledger(project.ledger.with_name(name), durable=False) as ledger:
            ledger.add(Judgement("s", "d", "not"))
    files = (
        "map.bin groups.json seeds.quarantine.jsonl .project.json.12.tmp review.sqlite-wal review.sqlite-shm"
    )
    for name in files.split():
        (project.own_folder / name).write_bytes(b"x")
    for folder in ("links", ".building-links"):
        (project.own_folder / folder).mkdir()
        (project.own_folder / folder / "pairs.jsonl").write_bytes(b"")
    return project


def content(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_review_is_deleted_with_all_that_linker_wrote(whole: Project) -> None:
    kept = Workspace(whole.own_folder.parent).create("kept")
    whole.delete()
    assert list(whole.own_folder.parent.iterdir()) == [kept.own_folder]


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt", "src/app.js", "uploads/mine.csv", "uploads/.abc.part", "uploads/posts.csv/x", "links/notes.txt",
        "index/notes.txt", "index/segments/1/ids.txt", ".building-index/texts/a.txt", "posts.review.SQLITE",
        "other.sqlite", ".git/config", "map.bin.bak", "review.sqlite", "uploads/link.csv", "map.bin",
    ],
)  # fmt: skip
def test_a_folder_with_anything_else_in_it_is_not_deleted(whole: Project, tmp_path: Path, name: str) -> None:
    path = whole.own_folder / name
    other = tmp_path / "other.txt"
    other.write_text("mine")
    if name in ("uploads/link.csv", "map.bin"):  # a link may lead anywhere
        path.unlink(missing_ok=True)
        path.symlink_to(other)
    else:
        if path.parent.is_file():
            path.parent.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"SQLite format 3\0 of another program")
    before = content(whole.own_folder)
    with pytest.raises(InputError, match="was not written by linker, so nothing was deleted"):
        whole.delete()
    assert content(whole.own_folder) == before
    path.unlink()


@pytest.mark.parametrize("about", ["", '"created": "2026-03-01T10:00:00+00:00", '])
@pytest.mark.parametrize(
    "lock", [None, b"", b"4711\n", b"linker: lock", b"linker: lock and mark of an index directory"]
)
def test_sources_of_a_web_application_are_no_review(tmp_path: Path, lock: bytes | None, about: str) -> None:
    app = tmp_path / "floods"
    (app / "uploads").mkdir(parents=True)
    (app / "project.json").write_text(f'{{"name": "Floods", {about}"version": "1.0"}}')
    (app / "review.sqlite").write_bytes(b"SQLite format 3\0" + bytes(100))
    if lock is not None:
        (app / "lock").write_bytes(lock)
    before = content(app)
    assert Workspace(tmp_path).projects == []
    with pytest.raises(InputError, match="lacks linker's mark, so nothing was deleted"):
        Project("floods", "Floods", app / "index", app / "review.sqlite", app).delete()
    assert content(app) == before


def test_a_review_of_linker_0_2_is_known_by_what_linker_wrote_and_marked(tmp_path: Path) -> None:
    project = Workspace(tmp_path).create("Floods")
    store(project, "posts.csv", io.BytesIO(b"id,text\n1,a\n"))
    lock = project.own_folder / "lock"
    lock.unlink()
    (found,) = Workspace(tmp_path).projects
    assert found == project
    found.adopt()
    assert lock.read_bytes() == MARK
    lock.unlink()
    found.delete()
    assert Workspace(tmp_path).projects == []


def test_a_ledger_alone_is_a_review_that_is_never_deleted(tmp_path: Path) -> None:
    (tmp_path / "news").mkdir()
    Ledger(tmp_path / "news" / "review.sqlite").close()
    (project,) = Workspace(tmp_path).projects
    project.adopt()
    with pytest.raises(InputError, match="lacks linker's mark"):
        project.delete()
    assert project.ledger.exists()


def test_a_linked_folder_is_not_deleted(tmp_path: Path) -> None:
    project = Workspace(tmp_path / "elsewhere").create("Floods")
    (tmp_path / "reviews").mkdir()
    (tmp_path / "reviews" / "floods").symlink_to(project.own_folder)
    (linked,) = Workspace(tmp_path / "reviews").projects
    with pytest.raises(InputError, match="nothing was deleted"):
        linked.delete()
    assert project.own_folder.exists()


def test_a_deletion_that_was_interrupted_is_repeated(whole: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    unlink, budget = os.unlink, [3]

    def killed(name: str, *, dir_fd: int | None = None) -> None:
        budget[0] -= 1
        if budget[0] < 0:
            raise KeyboardInterrupt
        unlink(name, dir_fd=dir_fd)

    for _ in range(5):
        budget[0] = 2
        monkeypatch.setattr(os, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            whole.delete()
        monkeypatch.undo()
    (found,) = Workspace(whole.own_folder.parent).projects
    found.delete()
    assert not whole.own_folder.exists()


def test_a_project_file_and_its_folder_are_the_owners_and_damage_is_named(tmp_path: Path) -> None:
    project = Workspace(tmp_path / "reviews").create("Floods")
    assert [p.stat().st_mode & 0o777 for p in (project.own_folder, project.uploads)] == [0o700, 0o700]
    project = Workspace(tmp_path).create("Floods")
    (tmp_path / "floods" / ABOUT).write_text("{")
    with pytest.raises(InputError, match=r"project\.json is damaged"):
        project.describe(name="x")


def test_a_folder_that_is_there_is_not_made_a_review(tmp_path: Path) -> None:
    (tmp_path / "floods").mkdir()
    with pytest.raises(InputError, match="already"):
        Workspace(tmp_path).create("Floods")
    assert [p.name for p in tmp_path.iterdir()] == ["floods"]


def test_a_creation_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(InputError, match="No space left"):
        Workspace(tmp_path).create("Floods")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "broken", ["{", "[]", "\ud800", '{"roles": 5}', '{"indexed": {}}', '{"columns": null}']
)
def test_a_broken_project_file_leaves_the_other_reviews_alone(tmp_path: Path, broken: str) -> None:
    workspace = Workspace(tmp_path)
    for name in ("Floods", "Votes"):
        workspace.create(name)
    (tmp_path / "floods" / ABOUT).write_bytes(broken.encode(errors="surrogatepass"))
    first, second = workspace.projects
    assert (first.key, first.name, first.ready) == ("floods", "floods", False)
    assert "project.json" in first.problem
    assert (second.name, second.problem) == ("Votes", "")
    assert workspace.project("votes") == second


def test_a_folder_that_cannot_be_read_is_shown_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(tmp_path)
    for name in ("Floods", "Votes"):
        workspace.create(name)

    def denied(directory: Path) -> bool:
        if directory.name == "floods":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return False

    monkeypatch.setattr(projects, "is_index", denied)
    first, second = workspace.projects
    assert "Permission denied" in first.problem
    assert second.name == "Votes"
