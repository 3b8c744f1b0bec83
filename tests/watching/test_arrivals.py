"""Posts arrive from pipes and growing files: each once, in order, however their bytes are cut."""

from __future__ import annotations

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
from linker.corpora import BadLine
from linker.corpora.records import Record
from linker.errors import InputError
from linker.lines import Splitter
from linker.watching import Arrivals, Position


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
    """Take the steps one after the other, some time apart."""

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

    def append(text: str) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)

    thread = grow(
        lambda: append(line(1)[5:] + line(2)),
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
    assert "is another file than before" in caplog.text


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*nowhere"):
        Arrivals(tmp_path / "nowhere")
    packed = tmp_path / "posts.jsonl.gz"
    packed.write_bytes(gzip.compress(line(0).encode()))
    with pytest.raises(InputError, match="is compressed: zcat it"):
        list(Arrivals(packed))
