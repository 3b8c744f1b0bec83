"""Pairs from files, in both formats; dev pairs are held out by item, so no text is on both sides."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linker.base.errors import InputError
from linker.scoring.pairs.data import Pair, groups, read_pairs
from linker.scoring.pairs.sts.cross_training import split_dev
from tests.helpers import shared_data
from tests.papers.pairs.sts.sts_helpers import graded_pairs, write_pairs


def test_json_lines_and_a_table_say_the_same(tmp_path: Path) -> None:
    pairs = graded_pairs(7)
    lines = write_pairs(tmp_path / "p.jsonl", pairs)
    rows = "".join(f"{p.id}\t{p.first}\t{p.second}\t{p.gold!r}\n" for p in pairs)
    (tmp_path / "p.tsv").write_text("id\ttext1\ttext2\tscore\n" + rows, encoding="utf-8")
    (tmp_path / "p.jsonl.gz").write_bytes(gzip.compress(lines.read_bytes()))
    for name in ("p.jsonl", "p.tsv", "p.jsonl.gz"):
        assert read_pairs(tmp_path / name) == pairs


@given(st.floats(0, 1), st.floats(0.5, 100))
def test_grades_of_any_scale_come_to_0_to_5(share: float, top: float) -> None:
    from linker.scoring.pairs.data import _grade

    assert 0 <= _grade(share * top, "f:1", top) <= 5 * (1 + 1e-12)
    assert _grade(share * top, "f:1", top) == pytest.approx(5 * share)


def test_ids_and_grades_may_be_missing_and_an_empty_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('\n{"text1": "a", "text2": "b"}\n', encoding="utf-8")
    assert read_pairs(path, graded=False) == [Pair("2", "a", "b", None)]
    path = tmp_path / "p.jsonl"
    path.write_text('{"_id": null, "text1": "a", "text2": "b"}\n{"_id": 0, "text1": "a", "text2": "b"}\n')
    assert [pair.id for pair in read_pairs(path, graded=False)] == ["1", "0"]
    (tmp_path / "p.jsonl").write_text("\n", encoding="utf-8")
    with pytest.raises(InputError, match="holds no pairs"):
        read_pairs(tmp_path / "p.jsonl")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"text1": "a", "score": 1}', "p.jsonl:2: the second sentence"),
        ('{"text1": " ", "text2": "b", "score": 1}', "p.jsonl:2: the first sentence"),
        ('{"text1": "a", "text2": "b"}', "p.jsonl:2: no grade"),
        ('{"text1": "a", "text2": "b", "score": 5.5}', "p.jsonl:2: the score 5.5 is outside 0–5"),
        ('{"text1": "a", "text2": "b", "score": -1}', "outside 0–5"),
        ('{"text1": "a", "text2": "b", "score": "x"}', "p.jsonl:2: the score 'x' is not a number"),
        ('{"text1": "a", "text2": "b", "score": "nan"}', "outside 0–5"),
        ("[1]", "p.jsonl:2: a JSON array"),
        ("{", "p.jsonl:2: not JSON"),
    ],
)
def test_a_bad_pair_is_named_by_file_and_line(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('{"text1": "a", "text2": "b", "score": 1}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=says.replace("(", r"\(")):
        read_pairs(path)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("one text\tanother\t3\n", "p.tsv:1: no column is called text1 or sentence1 or first"),
        ("text1\ttext2\na\tb\n", "p.tsv:1: no column is called score or gold or label"),
        ("text1\ttext2\tscore\na\tb\tc\t3\n", "p.tsv:2: 4 fields, but 3 columns"),
        ("text1\ttext2\tscore\na\tb\n", "p.tsv:2: no grade"),
        ("text1\ttext2\tscore\na\tb\t3,5\n", "p.tsv:2: the score '3,5' is not a number"),
    ],
)
def test_a_table_needs_names_and_no_more_fields_than_these(tmp_path: Path, table: str, says: str) -> None:
    path = tmp_path / "p.tsv"
    path.write_text(table, encoding="utf-8")
    with pytest.raises(InputError, match=says):
        read_pairs(path)


@pytest.mark.parametrize("name", ["p.tsv", "p.jsonl"])
def test_another_encoding_is_an_error_and_not_a_changed_text(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    text = (
        "text1\ttext2\nMüller\tStraße\n" if name == "p.tsv" else '\n{"text1": "Müller", "text2": "Straße"}\n'
    )
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=rf"{name}:2: byte \d+ is not UTF-8"):
        read_pairs(path, graded=False)
    path.write_bytes(text.encode("utf-8-sig"))
    assert read_pairs(path, graded=False) == [Pair("2", "Müller", "Straße", None)]


def pair(id_: str, first: str, second: str) -> Pair:
    return Pair(id_, first, second, 1.0)


def test_worked_items() -> None:
    pairs = [
        pair("1", "a", "b"),
        pair("2", "c", "d"),
        pair("3", "e", "b"),  # shares b with the first
        pair("2", "x", "y"),  # the translation of the second
        pair("4", "f", "e"),  # shares e with the third, and so an item with the first
        pair("5", "2", "1"),  # texts are not ids
        pair("6", "y", "x"),
    ]
    assert groups(pairs) == [[0, 2, 4], [1, 3, 6], [5]]


texts = st.text("abcdefgh", max_size=2)
few = st.lists(st.builds(pair, st.text("12345678", min_size=1, max_size=2), texts, texts), max_size=30)


@settings(max_examples=200, deadline=None)
@given(few)
def test_items_are_the_connected_components(pairs: list[Pair]) -> None:
    def alike(a: Pair, b: Pair) -> bool:
        return a.id == b.id or bool(set(a.texts) & set(b.texts))

    items: list[set[int]] = []
    for row in range(len(pairs)):
        joined = [item for item in items if any(alike(pairs[row], pairs[other]) for other in item)]
        items = [item for item in items if item not in joined] + [{row}.union(*joined)]
    assert groups(pairs) == sorted(sorted(item) for item in items)


@settings(max_examples=200, deadline=None)
@given(few, st.sampled_from([0.0, 0.1, 0.3, 0.5]), st.integers(0, 5))
def test_the_sides_share_nothing(pairs: list[Pair], share: float, seed: int) -> None:
    try:
        rest, dev = split_dev(pairs, share, seed)
    except InputError as e:
        assert "`dev`" in str(e)
        assert min(map(len, groups(pairs))) > round(share * len(pairs)) > 0
        return
    assert len(dev) <= round(share * len(pairs))
    assert sorted(map(id, rest + dev)) == sorted(map(id, pairs))
    assert not {p.id for p in rest} & {p.id for p in dev}
    assert not {t for p in rest for t in p.texts} & {t for p in dev for t in p.texts}
    assert (rest, dev) == split_dev(pairs, share, seed)


def test_single_items_fill_the_share_exactly() -> None:
    pairs = [pair(str(n), f"a{n}", f"b{n}") for n in range(50)]
    rest, dev = split_dev(pairs, 0.2, 0)
    assert (len(rest), len(dev)) == (40, 10)
    assert dev != split_dev(pairs, 0.2, 1)[1]
    with pytest.raises(InputError, match=r"more than 5 of the 50 pairs .* `dev`"):
        split_dev([pair("1", "a", "b")] * 50, 0.1, 0)


def test_no_translation_of_a_dev_pair_is_trained_on() -> None:
    folder = shared_data("sts")
    pairs = [p for language in ("en", "de") for p in read_pairs(folder / f"stsb-{language}-train.jsonl.gz")]
    rest, dev = split_dev(pairs, 0.1, 0)
    assert 0.095 * len(pairs) < len(dev) <= round(0.1 * len(pairs))
    assert not {p.id for p in rest} & {p.id for p in dev}
    assert not {t for p in rest for t in p.texts} & {t for p in dev for t in p.texts}
