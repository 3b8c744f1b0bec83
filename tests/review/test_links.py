"""Judging the pairs of a run."""

from pathlib import Path

import orjson
import pytest

from linker.base.errors import InputError
from linker.engine.building import create
from linker.review.links import ProposedLink, ProposedLinks, folder_of, make
from linker.review.ownership import PAIRS
from linker.review.project import Project, Workspace


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Workspace(tmp_path / "reviews").create("Pages")


def files(tmp_path: Path, run: str) -> tuple[Path, Path, Path]:
    paths = tmp_path / "pairs.run", tmp_path / "ar.jsonl", tmp_path / "en.jsonl"
    paths[0].write_text(run)
    for path, ids in ((paths[1], "ab"), (paths[2], "xyz")):
        path.write_bytes(b"".join(orjson.dumps({"id": i, "text": f"page {i}"}) + b"\n" for i in ids))
    return paths


RUN = "a Q0 x 1 .9 r\na Q0 y 2 .5 r\nb Q0 y 1 .8 r\nb Q0 z 2 .7 r\n"


def test_best_pairs_come_first_and_a_page_is_linked_once(tmp_path: Path, project: Project) -> None:
    make(project, *files(tmp_path, RUN))
    links = ProposedLinks(folder_of(project))
    pairs = []
    for verdict in ("not", "relevant", "skip", "relevant"):
        found = links.next("ana")
        assert found is not None
        pairs.append((found[1].source, found[1].target))
        links.judge(found[1], verdict, "ana")
    assert pairs == [("a", "x"), ("b", "y"), ("a", "y"), ("a", "y")]
    assert links.next("ana") is None
    assert links.counts() == {"not": 1, "relevant": 2}
    links.ledger.undo("ana")
    reopened = ProposedLinks(folder_of(project)).next("bo")
    assert reopened is not None
    assert reopened[1].target == "y"


@pytest.mark.parametrize("name", ["notes.txt", "pairs.jsonl"])
def test_a_folder_of_that_name_beside_an_index_is_not_deleted(tmp_path: Path, name: str) -> None:
    create(tmp_path / "posts.index")
    index = Workspace(tmp_path / "posts.index").single
    assert index is not None
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / name).write_text('{"mine": 1}\n')
    with pytest.raises(InputError, match="was not written by linker: move it elsewhere"):
        make(index, *files(tmp_path, RUN))
    assert (tmp_path / "links" / name).read_text() == '{"mine": 1}\n'


def test_what_is_not_in_the_run_or_its_pages_is_refused_and_nothing_is_replaced(
    tmp_path: Path, project: Project
) -> None:
    make(project, *files(tmp_path, RUN))
    with pytest.raises(InputError, match="'q', which is not in the second file"):
        make(project, *files(tmp_path, "a Q0 q 1 .9 r\n"))
    assert len(ProposedLinks(folder_of(project)).pairs) == 4
    make(project, *files(tmp_path, RUN))
    with pytest.raises(InputError, match="does not link"):
        ProposedLinks(folder_of(project)).judge(ProposedLink("a", "z", 0.0, 1), "relevant", "ana")


def test_damaged_pairs_are_named(tmp_path: Path, project: Project) -> None:
    make(project, *files(tmp_path, RUN))
    for line in ("{}", '{"source": 1', "[]"):
        (folder_of(project) / PAIRS).write_text(line + "\n")
        with pytest.raises(InputError, match=rf"{PAIRS} is damaged: upload the run again"):
            ProposedLinks(folder_of(project))
