"""Reading langlinks.sql: MySQL's escapes, any division into blocks, and every kind of damage."""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.support.wikis import Row, langlinks, quoted
from linker.base.errors import InputError
from linker.papers.bucc import compressed
from linker.papers.bucc.raw_pages import read_langlinks

AWKWARD = st.text(st.sampled_from("a'\"\\),(;\n\r\0\x1aé中%_` "), max_size=12)
ROWS = st.lists(
    st.tuples(st.integers(0, 10**9), st.sampled_from(["de", "en", "zh-min-nan"]), AWKWARD), max_size=20
)


def read(path: Path, text: str | bytes, code: str | None = None) -> list[Row]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(read_langlinks(path, code))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, together=st.integers(1, 5), block=st.integers(1, 400))
def test_rows_come_back_however_the_file_is_cut(
    tmp_path: Path, rows: list[Row], together: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressed, "BLOCK", block)
    text = langlinks(rows, together)
    assert read(tmp_path / "x.sql", text) == sorted(rows)
    assert read(tmp_path / "x.sql", text, "en") == [row for row in sorted(rows) if row[1] == "en"]


def slow(text: str) -> Iterator[Row]:
    """Read the rows one character at a time."""
    for statement in re.findall(r"^INSERT INTO `langlinks` VALUES (.*);$", text, re.MULTILINE):
        fields, field, inside, characters = [], "", False, iter(statement)
        for c in characters:
            if inside and c == "\\":
                n = next(characters)
                field += {"0": "\0", "n": "\n", "r": "\r", "Z": "\x1a"}.get(n, n)
            elif c == "'":
                inside = not inside
            elif not inside and c in ",()":
                fields += [field] if field or c != "(" else []
                field = ""
            else:
                field += c
        fields = [value for value in fields if value]
        yield from ((int(fields[i]), fields[i + 1], fields[i + 2]) for i in range(0, len(fields) - 2, 3))


def test_the_slow_reader_agrees(tmp_path: Path) -> None:
    rows = [(i, "en" if i % 2 else "de", f"L'été {i} \\ \"x\"),({i},'en','y') ; é中") for i in range(300)]
    text = langlinks(rows, 7)
    assert list(slow(text)) == read(tmp_path / "x.sql", text) == rows


def test_other_ways_to_write_it(tmp_path: Path) -> None:
    rows = [(1, "en", "A'b"), (2, "en", "C")]
    for text in (
        "INSERT INTO `langlinks` VALUES\n(1,'en','A''b'),\n(2,'en','C');",
        "insert ignore into `langlinks` (`ll_from`, `ll_lang`, `ll_title`) values (1, 'en', 'A\\'b') , (2,'en','C') ;",
        "REPLACE INTO `langlinks` VALUES (1,_binary 'en',_binary 'A\\'b');\n"
        "INSERT INTO `langlinks` VALUES (2,'en','C');",
        "INSERT INTO `other` VALUES (7,'en','Z');\n"
        "INSERT INTO `langlinks` VALUES (1,'en','A\\'b'),(2,'en','C');\n-- end",
    ):
        assert read(tmp_path / "x.sql", text) == rows
        assert read(tmp_path / "x.sql.gz", gzip.compress(text.encode())) == rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INSERT INTO `langlinks` VALUES (1,'en','A'),(2,'en", "damaged or truncated"),
        ("INSERT INTO `langlinks` VALUES (1,'en','A'),", "damaged or truncated"),
        ("INSERT INTO `langlinks` VALUES (1,'en','A'),(x);" + " " * 400_000, "damaged or truncated"),
        ("INSERT INTO `page` VALUES (1,'en','A');", "does not hold the table langlinks"),
        ("", "does not hold the table langlinks"),
        (
            "INSERT INTO `langlinks` (`ll_from`,`ll_title`,`ll_lang`) VALUES (1,'A','en');",
            "ll_from, ll_title, ll_lang",
        ),
        (
            "CREATE TABLE `langlinks` (\n  `ll_lang` varbinary(35),\n  `ll_from` int\n) ENGINE=InnoDB;",
            "ll_lang, ll_from",
        ),
    ],
)
def test_damage_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path / "x.sql", text)


def test_a_cut_gzip_file_is_an_error_and_quoting_is_that_of_mysql(tmp_path: Path) -> None:
    data = gzip.compress(langlinks([(i, "en", str(i)) for i in range(1000)]).encode())
    with pytest.raises(InputError, match=r"x\.sql\.gz is damaged or truncated"):
        read(tmp_path / "x.sql.gz", data[:-20])
    assert quoted('L\'a "b"\\\n') == 'L\\\'a \\"b\\"\\\\\\n'
