"""Dictionaries: each format recognised by its content, gzipped or not; bad lines are set aside, never fatal."""

import base64
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linker.base.errors import InputError
from linker.corpora.dictionaries import Dictionary, glosses, read_dictionary
from tests.crosslingual.synthetic import word
from tests.helpers import linker

CEDICT = """# CC-CEDICT
檔案 档案 [dang4 an4] /file/record/archive/
一 一 [yi1] /one/single/a (article)/as soon as it is possible to say so/
打開 打开 [da3 kai1] /to open/to show (a ticket)/to turn on/
"""


def written(path: Path, content: str | bytes) -> Path:
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if path.suffix in (".gz", ".dz") else raw)
    return path


@pytest.mark.parametrize("name", ["d.tsv", "d.tsv.gz", "odd"])
def test_tsv(tmp_path: Path, name: str) -> None:
    found = read_dictionary(written(tmp_path / name, "chat\tcat\n\nchat noir\tblack cat\tnoun\nchat\tcat\n"))
    assert found.format == "tsv"
    assert found.pairs == (("chat", "cat"), ("chat noir", "black cat"))


def test_muse(tmp_path: Path) -> None:
    found = read_dictionary(written(tmp_path / "fr-en.txt", "chat cat\nmaison house\nmaison  home\n"))
    assert (found.format, len(found.pairs)) == ("muse", 3)


@pytest.mark.parametrize("name", ["cedict_ts.u8", "cedict.txt.gz"])
def test_cedict(tmp_path: Path, name: str) -> None:
    found = read_dictionary(written(tmp_path / name, CEDICT))
    assert found.format == "cedict"
    assert {e for f, e in found.pairs if f == "档案"} == {"file", "record", "archive"}
    assert {e for f, e in found.pairs if f == "檔案"} == {"file", "record", "archive"}
    assert {e for f, e in found.pairs if f == "打开"} == {"open", "show", "turn on"}
    assert {e for f, e in found.pairs if f == "一"} == {"one", "single", "a"}


def number(value: int) -> str:
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return (number(value // 64) if value >= 64 else "") + digits[value % 64]


def write_dictd(folder: Path, suffix: str) -> Path:
    entries = {
        "00-database-info": "00-database-info\nA dictionary, of words\n",
        "chat": 'chat /ʃa/ <n, masc>\n1. cat\n2. tag (in a game), tomcat\n   "le chat" - the cat\nSynonym: matou\n',
        "maison": "maison <n>\nhouse; home\n",
        "été": "été\nsummer\n",
    }
    content, index = b"", ""
    for headword, text in entries.items():
        raw = text.encode()
        index += f"{headword}\t{number(len(content))}\t{number(len(raw))}\n"
        content += raw
    written(folder / f"fra-eng{suffix}", content)
    return written(folder / "fra-eng.index", index + "wrong\tAAA\t/////\nhalf\n")


@pytest.mark.parametrize("suffix", [".dict", ".dict.dz"])
def test_dictd(tmp_path: Path, suffix: str) -> None:
    index = write_dictd(tmp_path, suffix)
    found = read_dictionary(index)
    assert found.format == "dictd"
    expected = [("chat", "cat"), ("chat", "tag"), ("chat", "tomcat"), ("maison", "house"), ("maison", "home")]
    assert found.pairs == (*expected, ("été", "summer"))
    assert [bad.line for bad in found.skipped] == [5, 6]
    assert read_dictionary(tmp_path / f"fra-eng{suffix}").pairs == found.pairs


def test_dictd_without_its_other_file_names_it(tmp_path: Path) -> None:
    index = write_dictd(tmp_path, ".dict")
    (tmp_path / "fra-eng.dict").unlink()
    with pytest.raises(InputError, match=r"\.dict"):
        read_dictionary(index)
    written(tmp_path / "alone.dict", "x")
    with pytest.raises(InputError, match=r"alone\.index"):
        read_dictionary(tmp_path / "alone.dict")


def test_bad_lines_are_kept_with_place_and_reason(tmp_path: Path) -> None:
    found = read_dictionary(
        written(tmp_path / "d.tsv", b"chat\tcat\nalone\n\xff\xfe\tx\nmaison\thouse\n\t\n")
    )
    assert found.pairs == (("chat", "cat"), ("maison", "house"))
    assert [(bad.line, bad.reason) for bad in found.skipped] == [
        (2, "not two words separated by a tab"), (3, "invalid UTF-8"),
    ]  # fmt: skip


def test_a_cut_gzip_file_gives_what_came_before(tmp_path: Path) -> None:
    lines = "".join(f"mot{i}\tword{base64.b32encode(i.to_bytes(8, 'big')).decode()}\n" for i in range(3000))
    path = tmp_path / "d.tsv.gz"
    path.write_bytes(gzip.compress(lines.encode())[:-200])
    found = read_dictionary(path)
    assert len(found.pairs) > 1000
    assert "gzip" in found.skipped[-1].reason


@pytest.mark.parametrize("content", ["", "# only a comment\n", "word\n"])
def test_nothing_to_read_is_an_error_that_names_the_file(tmp_path: Path, content: str) -> None:
    with pytest.raises(InputError, match=r"d\.tsv"):
        read_dictionary(written(tmp_path / "d.tsv", content))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.tsv"):
        read_dictionary(tmp_path / "none.tsv")


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_pairs_or_an_error_of_ours(content: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "d")
        path.write_bytes(content)
        try:
            found = read_dictionary(path)
        except InputError:
            return
        assert isinstance(found, Dictionary)
        assert all(a.strip() and b.strip() for a, b in found.pairs)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("to run, (of water) to flow", ["run", "flow"]), ("the {b} <c> [d] house", ["house"]),
        ("something that is far too long", []), ("((nested) note) word", ["word"]),
    ],
)  # fmt: skip
def test_glosses(text: str, found: list[str]) -> None:
    assert glosses(text) == found


WORDS, TOPICS = 300, 60


def write(path: Path, language: str, alike: int, seed: int) -> Path:
    """Write 600 pages of two topics each, with ten words per topic; the first `alike` words are spelt identically."""
    rng = np.random.default_rng(seed)
    topics = np.random.default_rng(0).integers(WORDS, size=(TOPICS, 10))
    lines = []
    for page in range(600):
        drawn = rng.choice(topics[rng.choice(TOPICS, 2, replace=False)].ravel(), 30).tolist()
        text = " ".join(word(n, "source" if n < alike else language) for n in drawn)
        lines.append(json.dumps({"_id": f"{language}{page}", "text": text}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def collections(folder: Path, alike: int) -> list[Path]:
    return [
        write(folder / f"{name}.jsonl", name, alike, seed) for seed, name in enumerate(("source", "target"))
    ]


def test_a_dictionary_is_learned_from_words_that_are_spelt_alike(tmp_path: Path) -> None:
    files, out = collections(tmp_path, alike=100), tmp_path / "words.tsv"
    result = linker("bucc", "dictionary", *files, "--languages", "xx-yy", "--out", out, "--json")
    found = json.loads(result.stdout)
    pairs = [tuple(line.split("\t")) for line in out.read_text(encoding="utf-8").splitlines()]
    assert found["pairs"] == len(pairs) and found["agreement"] > 0.3
    known = {(word(n, "source"), word(n, "target")) for n in range(100, WORDS)}
    assert len(pairs) > 50
    assert sum(pair in known for pair in pairs) / len(pairs) > 0.6
    linked = linker(
        "link", *files, "--languages", "xx-yy", "--method", "dictionary", "--dictionary", out,
        "--run-name", "words", "--out", tmp_path / "words.run",
    )  # fmt: skip
    assert f"{len(pairs)} pairs, read as tsv" in linked.stderr


def test_collections_with_nothing_in_common_are_refused(tmp_path: Path) -> None:
    files, out = collections(tmp_path, alike=0), tmp_path / "words.tsv"
    result = linker("bucc", "dictionary", *files, "--languages", "xx-yy", "--out", out, check=1)
    assert "too little in common" in result.stderr and not out.exists()
