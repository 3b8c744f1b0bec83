"""Posts arrive from pipes and growing files: each once, in order, however their bytes are split."""

import gzip
import itertools
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.interface import Document
from linker.base.errors import InputError
from linker.base.lines import Splitter
from linker.corpora import BadLine
from linker.corpora.records import Record
from linker.review.watching import Arrivals, Position


def line(number: int) -> str:
    return json.dumps({"id": f"p{number}", "text": f"post {number}"}) + "\n"


def ids(batches: Iterator[tuple[list[Record], Position]], count: int | None = None) -> list[str]:
    records = (r.id if isinstance(r, Document) else r.reason for batch, _ in batches for r in batch)
    return list(itertools.islice(records, count))


@given(st.binary(), st.lists(st.integers(0, 40)), st.integers(1, 9))
def test_lines_do_not_depend_on_how_their_bytes_are_cut(data: bytes, cuts: list[int], limit: int) -> None:
    splitter = Splitter(limit)
    ends = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    found = [line for a, b in itertools.pairwise(ends) for line in splitter.feed(data[a:b])]
    found += splitter.rest()
    pieces = data.split(b"\n")
    whole = pieces if pieces[-1] else pieces[:-1]
    assert found == [(n, piece[:limit], len(piece)) for n, piece in enumerate(whole, start=1)]


def test_a_pipe_yields_what_it_holds_before_it_ends(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    seen, written = threading.Event(), list[bool]()

    def write() -> None:
        with pipe.open("w", encoding="utf-8") as file:
            file.write(line(0) + line(1)[:9])
            file.flush()
            written.append(seen.wait(20))
            file.write(line(1)[9:])

    writer = threading.Thread(target=write)
    writer.start()
    batches = iter(Arrivals(pipe))
    first, _ = next(batches)
    seen.set()
    assert [r.id for r in first if isinstance(r, Document)] == ["p0"]
    assert ids(batches) == ["p1"]
    writer.join()
    assert written == [True]


def grow(*steps: Callable[[], object]) -> threading.Thread:
    """Run the steps one after the other, some time apart."""

    def run() -> None:
        for step in steps:
            threading.Event().wait(0.25)
            step()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_growing_file_is_followed_through_rotation_and_cutting(tmp_path: Path) -> None:
    path = tmp_path / "posts.jsonl"
    path.write_text(line(0) + line(1)[:5], encoding="utf-8")

    thread = grow(
        lambda: append(path, line(1)[5:] + line(2)),
        lambda: path.rename(tmp_path / "posts.1"),
        lambda: path.write_text(line(3) + line(4), encoding="utf-8"),
        lambda: path.write_text(line(5), encoding="utf-8"),  # shorter: it was truncated and rewritten
    )
    assert ids(iter(Arrivals(path, follow=True)), 6) == [f"p{n}" for n in range(6)]
    thread.join()


def test_every_position_continues_with_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "posts.jsonl"
    text = "".join(map(line, range(9000))) + "{bad\n" + line(9000).rstrip("\n")
    path.write_text(text, encoding="utf-8")
    whole = ids(iter(Arrivals(path)))
    assert len(whole) == 9002
    assert whole[0] == "p0"
    assert whole[-1] == "p9000"
    batches = list(Arrivals(path))
    assert len(batches) > 1
    done = 0
    for records, position in batches:
        done += len(records)
        assert ids(iter(Arrivals(path, start=position))) == whole[done:]
    first = batches[0][1]
    assert first.lines < 9000
    bad = [r for records, _ in Arrivals(path, start=first) for r in records if isinstance(r, BadLine)]
    assert [r.line for r in bad] == [9001]


def test_another_file_of_the_same_name_is_read_from_its_beginning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, other = tmp_path / "posts.jsonl", tmp_path / "other"
    path.write_text(line(0), encoding="utf-8")
    ((_, position),) = list(Arrivals(path))
    other.write_text(line(1) + line(2), encoding="utf-8")
    other.replace(path)
    assert ids(iter(Arrivals(path, start=position))) == ["p1", "p2"]
    assert "has been replaced by another file" in caplog.text
    assert "Lines after line 1 of" in caplog.text


def append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def read(path: Path, start: Position | None = None) -> tuple[list[str], Position]:
    """Read the existing posts, as a watch that then ends; return the ids and the position reached."""
    batches = list(Arrivals(path, start=start))
    position = batches[-1][1] if batches else start
    assert position is not None
    return ids(iter(batches)), position


def test_a_line_that_is_half_written_is_read_once_it_is_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "posts.jsonl"
    path.write_text(line(0) + line(1)[:9], encoding="utf-8")
    found, position = read(path)
    assert found == ["p0"]
    assert "the last line" in caplog.text and "(2)" in caplog.text
    append(path, line(1)[9:-1])
    found, position = read(path, position)
    assert found == ["p1"]  # whole, though its newline is missing
    append(path, "\n" + "{bad\n" + line(2))
    bad = [r for records, _ in Arrivals(path, start=position) for r in records if isinstance(r, BadLine)]
    assert [r.line for r in bad] == [3]
    found, position = read(path, position)
    assert found[1:] == ["p2"]
    assert read(path, position)[0] == []


def test_a_half_line_of_a_pipe_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(line(0) + line(1)[:9], encoding="utf-8"))
    writer.start()
    records = [record for batch, _ in Arrivals(pipe) for record in batch]
    writer.join()
    assert [isinstance(record, BadLine) for record in records] == [False, True]


def test_the_tail_of_a_file_that_was_rotated_meanwhile_is_read(tmp_path: Path) -> None:
    path = tmp_path / "posts.jsonl"
    path.write_text(line(0) + line(1), encoding="utf-8")
    _, position = read(path)
    append(path, line(2) + line(3)[:7])  # its writer died in the middle of a line
    path.rename(tmp_path / "posts.jsonl.2")
    (tmp_path / "posts.jsonl.1").write_text(line(4), encoding="utf-8")
    path.write_text(line(5), encoding="utf-8")
    for name, others in (("posts.jsonl.3", line(90)), ("posts.jsonl.quarantine.jsonl", line(91))):
        (tmp_path / name).write_text(others, encoding="utf-8")
    for age, name in enumerate(("posts.jsonl", "posts.jsonl.1", "posts.jsonl.2", "posts.jsonl.3")):
        os.utime(tmp_path / name, ns=(0, (9 - age) * 10**9))
    batches = list(Arrivals(path, start=position))
    found = ids(iter(batches))
    assert [name for name in found if name.startswith("p")] == ["p2", "p4", "p5"]
    assert len(found) == 4  # with the half line, which is never continued
    for number in range(1, len(batches) + 1):  # killed anywhere, it resumes from there
        rest = ids(iter(Arrivals(path, start=batches[number - 1][1])))
        assert rest == [name for batch in batches[number:] for name in ids(iter([batch]))]


def test_a_rotated_file_is_not_over_before_the_next_one_has_a_line(tmp_path: Path) -> None:
    path, rotated = tmp_path / "posts.jsonl", tmp_path / "posts.jsonl.1"
    path.write_text(line(0), encoding="utf-8")
    _, position = read(path)
    path.rename(rotated)
    path.touch()
    append(rotated, line(1) + line(2)[:5])  # the logger still has the previous file open
    found, position = read(path, position)
    assert found == ["p1"]
    append(rotated, line(2)[5:])
    path.write_text(line(3), encoding="utf-8")
    assert read(path, position)[0] == ["p2", "p3"]


def test_a_file_that_shrank_or_was_begun_again_is_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "posts.jsonl"
    path.write_text(line(0) + line(1), encoding="utf-8")
    _, position = read(path)
    for content in ((2,), (3, 4, 5)):  # shorter than what was read, and longer, in the same inode
        path.write_text("".join(map(line, content)), encoding="utf-8")
        assert path.stat().st_ino == position.inode
        caplog.clear()
        assert read(path, position)[0] == [f"p{n}" for n in content]
        assert "has been replaced by another file" in caplog.text


def test_a_file_that_was_copied_and_cut_is_read_to_the_end_of_its_copy(tmp_path: Path) -> None:
    path = tmp_path / "posts.jsonl"
    path.write_text(line(0), encoding="utf-8")
    _, position = read(path)
    append(path, line(1))
    (tmp_path / "posts.jsonl.1").write_bytes(path.read_bytes())
    path.write_text(line(2), encoding="utf-8")
    assert read(path, position)[0] == ["p1", "p2"]


def test_position_of_earlier_version_is_told_by_inode_and_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    path = tmp_path / "posts.jsonl"
    path.write_text(line(0) + line(1), encoding="utf-8")
    old = Position(len(line(0)), 1, path.stat().st_ino)
    assert read(path, old)[0] == ["p1"]
    path.write_text(line(2)[:9] + "\n", encoding="utf-8")
    assert len(read(path, old)[0]) == 1
    with pytest.raises(InputError, match=r"cannot read .*nowhere"):
        Arrivals(tmp_path / "nowhere")
    packed = tmp_path / "posts.jsonl.gz"
    packed.write_bytes(gzip.compress(line(0).encode()))
    with pytest.raises(InputError, match="is compressed: pipe it through zcat"):
        list(Arrivals(packed))
