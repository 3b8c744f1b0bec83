"""Reading and writing: errors on malformed input name file and line; written files read back the same."""

import gzip
import math
import random
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linker.base.errors import InputError
from linker.evaluation import evaluate, read_qrels, read_run, write_run
from linker.evaluation.reading import columns
from linker.evaluation.reading.decimals import numbers
from linker.evaluation.reading.fields import Fields


def test_run_and_qrels_are_nested_mappings(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("q2 Q0 a 1 2.5 x\nq1 Q0 é 1 -1e-3 x\nq2 Q0 b 7 .5 the last\n")
    run = read_run(tmp_path / "run")
    assert {t: run[t] for t in run} == {"q1": {"é": -0.001}, "q2": {"a": 2.5, "b": 0.5}}
    assert run.name == "the"
    (tmp_path / "qrels").write_text("q1 0 é 1\nq2 0 a -1\n")
    assert dict(read_qrels(tmp_path / "qrels")) == {"q1": {"é": 1}, "q2": {"a": -1}}


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
@pytest.mark.parametrize("gap", [" ", "\t", "  \t "])
def test_white_space_line_ends_and_blank_lines(tmp_path: Path, gap: str, end: str) -> None:
    rows = [("q1", "Q0", "a", "1", "2", "n"), ("q1", "Q0", "b", "2", "1", "n")]
    (tmp_path / "run").write_bytes(
        ("\n" + gap + f"{end or chr(10)}".join(gap.join(r) for r in rows) + end).encode()
    )
    assert dict(read_run(tmp_path / "run")) == {"q1": {"a": 2, "b": 1}}


def test_gz_beir_and_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "q.tsv.gz").write_bytes(gzip.compress(b"query-id\tcorpus-id\tscore\nq1\ta\t2\n"))
    assert dict(read_qrels(tmp_path / "q.tsv.gz")) == {"q1": {"a": 2}}
    (tmp_path / "bom").write_bytes("\ufeffq1 0 a 1\n".encode())
    assert list(read_qrels(tmp_path / "bom")) == ["q1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 Q0 a 1 2 n\nq1 Q0 b 1 2\n", r"run:2: 5 columns; expected: topic Q0 document rank score name"),
        ("q1 Q0 a 1 2 n\n\nq1 Q0 b 1 nan n\n", r"run:3: score 'nan'"),
        ("q1 Q0 a 1 NaN n\n", r"run:1: score 'NaN'"),
        ("q1 Q0 a 1 1_0 n\n", r"run:1: score '1_0'"),
        ("q1 Q0 a 1 0x10 n\n", r"run:1: score '0x10'"),
        ("q1 Q0 a 1 1.2.3 n\n", r"run:1: score '1.2.3'"),
        ("q1 Q0 a 1 . n\n", r"run:1: score '.'"),
        ("q1 Q0 a 1 - n\n", r"run:1: score '-'"),
        ("q1 Q0 a 1 ٣ n\n", r"run:1: score '٣'"),
        (
            "q1 Q0 a 1 2 n\nq2 Q0 a 1 2 n\n \nq1 Q0 a 9 1 n\n",
            r"run:4: document 'a' occurs twice for topic 'q1'",
        ),
        ("", r"run: the file is empty"),
        (" \n\n", r"run: the file is empty"),
        ("q1 Q0 a\0b 1 2 n\n", r"run:1: the line contains a NUL"),
    ],
)
def test_malformed_runs(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "run").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_run(tmp_path / "run")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 0 a 1\nq1 0 b\n", r"qrels:2: 3 columns; expected: topic 0 document relevance"),
        ("q1 0 a 1 x\n", r"qrels:1: 5 columns"),
        ("q1 0 a 1.0\n", r"qrels:1: relevance '1.0' is not an integer"),
        ("q1 0 a 1\nq1 0 b one\n", r"qrels:2: relevance 'one' is not an integer"),
        ("q1 0 a 99999999999\n", r"qrels:1: relevance '99999999999'"),
        ("q1 0 a 1\nq1 0 a 1\n", r"qrels:2: document 'a' occurs twice"),
        ("q1\ta\t1\n", r"qrels:1: three columns without BEIR's header"),
        ("query-id\tcorpus-id\tscore\nq1\ta\tx\n", r"qrels:2: relevance 'x'"),
        ("query-id\tcorpus-id\tscore\nq1 0 a 1\n", r"qrels:2: 4 columns; expected: query-id corpus-id score"),
        ("query-id\tcorpus-id\tscore\n", r"qrels: no line after the header"),
        ("", r"qrels: the file is empty"),
    ],
)
def test_malformed_qrels(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "qrels").write_text(text)
    with pytest.raises(InputError, match=message):
        read_qrels(tmp_path / "qrels")


def test_a_spreadsheet_and_utf_16_are_named(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_bytes(b"PK\x03\x04\x14\0\x06\0")
    with pytest.raises(InputError, match="qrels is a ZIP archive, such as a spreadsheet"):
        read_qrels(tmp_path / "qrels")
    (tmp_path / "qrels").write_text("q 0 a 1\n", encoding="utf-16")
    with pytest.raises(InputError, match="qrels is UTF-16: save it as UTF-8"):
        read_qrels(tmp_path / "qrels")


@pytest.mark.parametrize("depth", [2, 3, 16, 17, 300])
def test_a_repeat_is_found_wherever_it_is(tmp_path: Path, depth: int) -> None:
    """In short and long topics, adjacent or far apart; the same document in another topic is not a repeat."""
    lines = [f"q{topic} Q0 d{i} 0 {-i} n\n" for topic in range(3) for i in range(depth)]
    (tmp_path / "run").write_text("".join(lines))
    assert len(read_run(tmp_path / "run")["q1"]) == depth
    for twin in {0, depth - 2}:
        changed = [*lines[: 2 * depth - 1], f"q1 Q0 d{twin} 0 9 n\n", *lines[2 * depth :]]
        (tmp_path / "run").write_text("".join(changed))
        with pytest.raises(InputError, match=rf"run:{2 * depth}: .*first in .*run:{depth + twin + 1}, score"):
            read_run(tmp_path / "run")


def test_a_repeated_judgement_says_which_line_to_delete(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q 0 a 1\nq 0 b 1\nq 0 a 1\n")
    with pytest.raises(InputError, match=r"qrels:1, both with relevance 1: delete one of the two lines"):
        read_qrels(tmp_path / "qrels")
    (tmp_path / "qrels").write_text("q 0 a 1\nq 0 a 0\n")
    with pytest.raises(InputError, match=r"relevance 1 there and 0 here: delete the line that is wrong"):
        read_qrels(tmp_path / "qrels")


def test_missing_and_damaged_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        read_run(tmp_path / "nowhere")
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"q 0 a 1\n" * 100)[:-8])
    with pytest.raises(InputError, match=r"x\.gz"):
        read_qrels(tmp_path / "x.gz")
    (tmp_path / "y.gz").write_bytes(b"not gzip")
    with pytest.raises(InputError, match=r"y\.gz"):
        read_qrels(tmp_path / "y.gz")


def test_a_run_of_other_topics_is_an_error_not_a_zero() -> None:
    with pytest.raises(InputError, match="none of its topics"):
        evaluate({"1": {"a": 1}}, {"01": {"a": 1.0}})


def test_blocks_split_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(0)
    run = {
        f"q{t}": {f"d{rng.randint(0, 10**9)}" * rng.randint(1, 4): rng.random() for _ in range(9)}
        for t in range(40)
    }
    lines = [f"{t} Q0 {d} 0 {s!r} n\n" for t in run for d, s in run[t].items()]
    rng.shuffle(lines)
    (tmp_path / "run").write_text("".join(lines))
    for size in (1, 30, 777, 10**6):
        monkeypatch.setattr(columns, "_BLOCK", size)
        assert dict(read_run(tmp_path / "run")) == run
    bad = [*lines, "q1 Q0 x 0 1\n"]
    (tmp_path / "run").write_text("".join(bad))
    monkeypatch.setattr(columns, "_BLOCK", 500)
    with pytest.raises(InputError, match=f"run:{len(bad)}: 5 columns"):
        read_run(tmp_path / "run")
    (tmp_path / "run").write_text("".join([*lines, lines[3]]))
    with pytest.raises(InputError, match=f"run:{len(bad)}: document"):
        read_run(tmp_path / "run")


def test_a_pipe_can_be_read(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    text = b"q1 Q0 a 1 2 n\n" * 1 + b"".join(b"q2 Q0 d%d 1 2 n" % i + b"\n" for i in range(9000))
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(text,))
    writer.start()
    run = read_run(tmp_path / "pipe")
    writer.join()
    assert len(run["q2"]) == 9000


decimals = st.one_of(
    st.floats(allow_nan=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=5).map(str),
    st.from_regex(r"\A[+-]?[0-9]{0,12}\.?[0-9]{0,12}\Z"),
    st.from_regex(r"\A-?[0-9]{1,4}\.[0-9]{1,11}(e[+-]?[0-9]{1,2})?\Z"),
    st.text("0123456789.-+e/:", min_size=1, max_size=18),
    st.sampled_from(
        ["inf", "-inf", "Infinity", "nan", "1e400", "0" * 20 + "1", "9007199254740993", "123456789012345.6"]
    ),
)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.lists(decimals, min_size=1, max_size=20))
def test_numbers_are_read_as_c_reads_them(texts: list[str]) -> None:
    got = numbers(Fields.of(texts)).tolist()
    for text, value in zip(texts, got, strict=True):
        try:
            expected = float(text)
        except ValueError:
            expected = math.nan
        assert value == expected or (math.isnan(value) and math.isnan(expected)), text
        assert math.copysign(1, value) == math.copysign(1, expected) or math.isnan(expected)


def test_every_short_shape_of_decimal_is_read_exactly() -> None:
    """Every count of digits before and after the point, with and without sign, up to 18 characters."""
    rng = random.Random(1)
    shapes = [
        (sign, a, b) for sign in ("", "-", "+") for a in range(18) for b in range(18) if 0 < a + b <= 17
    ]
    digits = [
        ("".join(rng.choices("0123456789", k=n)) for n in shape[1:]) for shape in shapes for _ in range(8)
    ]
    signs = [sign for sign, _, _ in shapes for _ in range(8)]
    texts = [f"{sign}{whole}.{rest}" for sign, (whole, rest) in zip(signs, digits, strict=True)]
    texts += [text.replace(".", "") for text in texts]
    rng.shuffle(texts)
    assert numbers(Fields.of(texts)).tolist() == [float(text) for text in texts]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30), min_size=1
    )
)
def test_fields_sort_compare_and_hash_as_bytes(texts: list[str]) -> None:
    fields = Fields.of(texts)
    coded = [t.encode() for t in texts]
    assert fields.texts() == texts
    assert fields.array().tolist() == coded
    order = np.lexsort(fields.sort_keys()).tolist()
    assert [coded[i] for i in order] == sorted(coded)
    assert fields.changes().tolist() == [i == 0 or texts[i] != texts[i - 1] for i in range(len(texts))]
    hashes = fields.hashes().tolist()
    assert len(set(hashes)) == len(set(texts))


def test_written_runs_read_back_and_keep_their_order(tmp_path: Path) -> None:
    scores = np.array([0.1, 0.1, 0.30000001, -np.inf, np.inf], np.float32)
    for name in ("run", "run.gz"):
        write_run(tmp_path / name, [("q1", ["9", "10", "a", "b", "é"], scores), ("q0", [], [])], "me")
        data = (tmp_path / name).read_bytes()
        text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
        assert text.splitlines() == [
            "q1 Q0 é 1 inf me", "q1 Q0 a 2 0.300000012 me", "q1 Q0 9 3 0.100000001 me",
            "q1 Q0 10 4 0.100000001 me", "q1 Q0 b 5 -inf me",
        ]  # fmt: skip
        again = read_run(tmp_path / name)
        assert {d: np.float32(s) for d, s in again["q1"].items()} == dict(
            zip(["9", "10", "a", "b", "é"], scores, strict=True)
        )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "run.gz"]


def test_equal_printed_scores_are_ordered_by_id(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [("q", ["a", "b"], [1.0000000002, 1.0])])
    assert [line.split()[2] for line in (tmp_path / "run").read_text().splitlines()] == ["b", "a"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("q 1", ["a"], [1.0]), "white space"), (("q", ["a b"], [1.0]), "white space"),
        (("q", [""], [1.0]), "empty"), (("q", ["a"], [math.nan]), "NaN"),
        (("q", ["a", "a"], [1.0, 2.0]), "distinct"), (("q", ["a"], [1.0, 2.0]), "one score"),
    ],
)  # fmt: skip
def test_unwritable_rows_are_left(
    tmp_path: Path, row: tuple[str, list[str], list[float]], message: str
) -> None:
    (tmp_path / "run").write_text("old")
    with pytest.raises(InputError, match=message):
        write_run(tmp_path / "run", [("q0", ["x"], [1.0]), row])
    assert (tmp_path / "run").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_repeated_topic_and_a_bad_place_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="twice"):
        write_run(tmp_path / "run", [("q", ["a"], [1.0]), ("q", ["b"], [1.0])])
    with pytest.raises(InputError, match="cannot write"):
        write_run(tmp_path / "no" / "run", [])


def test_hash_collisions_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    qrels = {"q": {"a": 1, "b": 0}, "r": {"a": 2}}
    run = {"q": {"x": 3.0, "a": 2.0, "b": 1.0}, "r": {"b": 2.0, "a": 1.0}, "s": {"a": 1.0}}
    expected = evaluate(qrels, run, "map bpref ndcg")
    monkeypatch.setattr(Fields, "hashes", lambda self: np.zeros(len(self), np.uint64))
    collided = evaluate(qrels, run, "map bpref ndcg")
    assert dict(collided) == dict(expected)
    # an unjudged document with the hash of a judged one, which by itself does not indicate a collision
    monkeypatch.setattr(Fields, "hashes", lambda self: np.full(len(self), 7, np.uint64))
    assert evaluate({"q": {"a": 1}}, {"q": {"x": 2.0, "a": 1.0}}, "map")["map"] == 0.5


def test_gzip_data_altered_in_the_middle_name_the_file(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d3 1\n" * 9, mtime=0))
    data[14:18] = b"\xff\xff\xff\xff"
    (tmp_path / "x.gz").write_bytes(data)
    with pytest.raises(InputError, match=r"cannot read .*x\.gz"):
        read_qrels(tmp_path / "x.gz")
