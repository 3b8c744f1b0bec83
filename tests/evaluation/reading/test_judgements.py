"""Judgements for tuning or learning: a repeated line is dropped with a warning, a contradiction is refused."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linker.base.errors import InputError
from linker.evaluation import read_qrels
from linker.evaluation.reading.judgements import merged_qrels


def written(path: Path, lines: list[tuple[str, str, int]]) -> Path:
    path.write_text("".join(f"{topic} 0 {document} {relevance}\n" for topic, document, relevance in lines))
    return path


def test_an_identical_line_is_dropped_with_a_warning(tmp_path: Path) -> None:
    path = written(
        tmp_path / "qrels", [("q", "a", 1), ("q", "b", 0), ("p", "a", 2), ("q", "a", 1), ("q", "c", 1)]
    )
    warnings: list[str] = []
    entries = read_qrels(path, warn=warnings.append)
    assert dict(entries) == {"p": {"a": 2}, "q": {"a": 1, "b": 0, "c": 1}}
    assert warnings == [
        f"{path}:4: repeats the judgement in {path}:1 (topic 'q', document 'a'): dropped 1 repeated line"
    ]
    assert [entries.place(*pair) for pair in (("q", "a"), ("p", "a"), ("q", "c"))] == [
        f"{path}:1", f"{path}:3", f"{path}:5",
    ]  # fmt: skip


def test_a_contradiction_is_refused_in_one_file_and_between_two(tmp_path: Path) -> None:
    path = written(tmp_path / "qrels", [("q", "a", 1), ("q", "a", 1), ("q", "a", 0)])
    with pytest.raises(InputError, match=r"qrels:3: .*first in .*qrels:1, relevance 1 there and 0 here"):
        read_qrels(path, warn=lambda message: None)
    first = written(tmp_path / "dev", [("p", "x", 1), ("q", "a", 1)])
    second = written(tmp_path / "train", [("q", "b", 1), ("q", "a", 0)])
    with pytest.raises(
        InputError, match=r"train:2: document 'a' of topic 'q' has relevance 0, but 1 in .*dev:2"
    ):
        merged_qrels([first, second], lambda message: None)


def test_what_two_files_share_is_named_and_counted(tmp_path: Path) -> None:
    first = written(tmp_path / "dev", [("q", "a", 1), ("p", "b", 1), ("p", "c", 1)])
    second = written(tmp_path / "train", [("r", "a", 1), ("p", "c", 1), ("q", "a", 1)])
    warnings: list[str] = []
    merged = merged_qrels([first, second], warnings.append)
    assert merged == {"p": {"b": 1, "c": 1}, "q": {"a": 1}, "r": {"a": 1}}
    assert warnings == [
        f"{second}:2: repeats the judgement in {first}:3 (topic 'p', document 'c'): dropped 2 repeated lines, of which "
        "this is the first"
    ]


judgement = st.tuples(st.sampled_from("pqr"), st.sampled_from("abcd"), st.integers(0, 1))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(judgement, min_size=1, max_size=40), min_size=1, max_size=3))
def test_merging_equals_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[tuple[str, str, int]]]
) -> None:
    folder = tmp_path_factory.mktemp("qrels")
    paths = [written(folder / f"{n}", lines) for n, lines in enumerate(files)]
    known: dict[tuple[str, str], int] = {}
    agree, dropped = True, 0
    for topic, document, relevance in (line for lines in files for line in lines):
        dropped += (topic, document) in known
        agree = agree and known.setdefault((topic, document), relevance) == relevance
    warnings: list[str] = []
    if not agree:
        with pytest.raises(InputError, match="delete the line that is wrong"):
            merged_qrels(paths, warnings.append)
        return
    merged = merged_qrels(paths, warnings.append)
    assert {(t, d): r for t, judged in merged.items() for d, r in judged.items()} == known
    assert sum(int(w.partition("dropped ")[2].split()[0]) for w in warnings) == dropped
