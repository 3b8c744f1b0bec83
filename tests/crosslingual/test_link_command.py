"""`linker link` and `linker bucc` as users run them, from raw pages to the table."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from indexes.dtypes import Float32Array
from linker.base.errors import InputError, UsageError
from linker.cli.commands import linking as commands
from linker.crosslingual.methods import METHODS
from linker.crosslingual.options import LinkOptions, Method
from linker.crosslingual.runs import link_and_write
from linker.crosslingual.scoring.dense import chunks, encode_pages
from linker.crosslingual.task import Task, read_links
from linker.papers.bucc.prepare import prepare
from tests.crosslingual.tiny import numbered
from tests.helpers import linker, run_page, write_json_lines

TOPICS = [
    ("volcan", "volcano"), ("pont", "bridge"), ("roi", "king"), ("navire", "ship"), ("loi", "law"), ("fleuve", "river"),
    ("guerre", "war"), ("ville", "city"),
]  # fmt: skip


def french(i: int) -> str:
    word = TOPICS[i][0]
    return f"Ceci est le début. Le {word} de Lieu{i}stan, {word} célèbre en {1800 + i}, avec Nom{i}ski."


def english(i: int) -> str:
    word = TOPICS[i][1]
    return f"This is the beginning. The {word} of Lieu{i}stan, a famous {word} in {1800 + i}, with Nom{i}ski."


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Wikiextractor's folder on one side, JSONL on the other; page 7 links in only one direction."""
    folder = tmp_path / "fr" / "AA"
    folder.mkdir(parents=True)
    ours, theirs = [], []
    for i, (fr, en) in enumerate(TOPICS):
        ours.append(
            {
                "id": str(100 + i), "url": "u", "title": fr.title(), "text": french(i),
                "langlinks": {"en": en.title()},
            }
        )  # fmt: skip
        back = [{"lang": "fr", "*": fr.title()}] if i != 7 else []
        theirs.append({"_id": f"E{i}", "title": en.title(), "text": english(i), "langlinks": back})
    write_json_lines(folder / "wiki_00", ours[:4])
    write_json_lines(folder / "wiki_01", ours[4:])
    (tmp_path / "en").mkdir()
    write_json_lines(tmp_path / "en" / "pages.jsonl", theirs)
    words = "".join(f"{fr}\t{en}\n" for fr, en in TOPICS) + "célèbre\tfamous\n"
    (tmp_path / "fr-en.tsv").write_text(words, encoding="utf-8")
    return tmp_path


def test_from_raw_pages_to_the_table(raw: Path) -> None:
    data = raw / "bucc"
    report = json.loads(
        linker(
            "bucc", "prepare", raw / "fr", raw / "en", "--languages", "fr-en", "--out", data, "--json"
        ).stdout
    )
    assert (report["source_pages"], report["target_pages"], report["linked_both_ways"]) == (8, 8, 7)
    assert report["kept"] == report["train"] + report["test"] < 7
    files = [data / f"fr.{half}.jsonl" for half in ("train", "test")]
    pages = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    assert all("début" not in page["text"] and page["text"].startswith("Le ") for page in pages)
    gold = dict(line.split()[::2] for line in (data / "qrels" / "fr.test.txt").read_text().splitlines())
    key = dict(line.split("\t") for line in (data / "key.tsv").read_text().splitlines())
    assert all(int(key[s]) - 100 == int(key[t][1:]) for s, t in gold.items())
    run = raw / "r.run"
    done = linker(
        "link", data / "fr.test.jsonl", data / "en.test.jsonl", "--method", "dictionary",
        "--dictionary", raw / "fr-en.tsv", "--run-name", "words", "--out", run,
    )  # fmt: skip
    assert "method dictionary" in done.stderr
    lines = [line.split() for line in run.read_text().splitlines()]
    assert all(len(line) == 6 and line[5] == "words" for line in lines)
    assert {line[0]: line[2] for line in lines if line[3] == "1"} == gold
    assert json.loads((raw / "r.run.json").read_text())["method"] == "dictionary"
    assert sorted(p.name for p in raw.glob("r.run*")) == ["r.run", "r.run.json"]
    table = linker("bucc", "evaluate", data / "qrels" / "fr.test.txt", "--run", run).stdout
    assert table.splitlines()[1].split() == ["fr", "words", str(len(gold)), *["1.000"] * 7]
    (row,) = json.loads(
        linker("bucc", "evaluate", data / "qrels" / "fr.test.txt", "--run", run, "--json").stdout
    )
    assert row["complete"] == {"recip_rank": 1, "success_1": 1, "success_5": 1}


def test_every_command_of_the_pages_works(raw: Path) -> None:
    printed = run_page("bucc.md", raw, blocks=3)
    rows = {line.split()[1]: line.split()[2:] for line in printed.splitlines() if line.startswith("fr  ")}
    assert set(rows) == {"hapax", "words", "auto"}
    assert rows["words"][2] == "1.000"
    run_page("crosslingual.md", raw, blocks=3)


def test_pairs_are_kept_between_the_quartiles_of_the_ratio_of_lengths(tmp_path: Path) -> None:
    """Of nine pairs whose source is 1, 2, … 9 times as long, pairs 3 to 7 stay, including the bounds."""
    for code, lengths, other in (("fr", range(10, 100, 10), "en"), ("en", [10] * 9, "fr")):
        pages = (
            {"_id": f"{code}{i}", "text": f"Start. {'x' * length}", "langlinks": {other: f"{other}{i}"}}
            for i, length in enumerate(lengths, start=1)
        )
        write_json_lines(tmp_path / f"{code}.jsonl", pages)
    out = tmp_path / "out"
    report = prepare(tmp_path / "fr.jsonl", tmp_path / "en.jsonl", out, ("fr", "en"))
    assert report.ratio == (3.0, 7.0)
    assert report.kept == 5
    key = {
        page: id_ for id_, page in (line.split("\t") for line in (out / "key.tsv").read_text().splitlines())
    }
    assert set(key) == {f"{code}{i}" for code in ("fr", "en") for i in range(3, 8)}
    places = [[key[f"{code}{i}"][2:] for i in range(3, 8)] for code in ("fr", "en")]
    assert sorted(places[0]) == sorted(places[1]) != places[0]  # ids are unrelated to the order of pages
    assert places[0] != places[1]


def test_preparing_twice_gives_the_same_and_another_seed_another_split(raw: Path) -> None:
    def prepared(name: str, seed: int) -> dict[str, bytes]:
        out = raw / name
        linker(
            "bucc", "prepare", raw / "fr", raw / "en", "--languages", "fr-en", "--out", out, "--seed",
            str(seed),
        )  # fmt: skip
        return {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*.*")}

    first = prepared("a", 1)
    assert prepared("b", 1) == first
    assert prepared("c", 2) != first


def test_coverage_counts_unanswered_pages(tmp_path: Path) -> None:
    (tmp_path / "fr.txt").write_text("f1 0 e1 1\nf2 0 e2 1\nf3 0 e3 1\nf4 0 e4 1\n")
    (tmp_path / "r").write_text("f1 X e1 1 .9 x\nf2 X e9 1 .9 x\nf2 X e2 2 .8 x\n")
    (row,) = json.loads(
        linker("bucc", "evaluate", tmp_path / "fr.txt", "--run", tmp_path / "r", "--json").stdout
    )
    assert row["coverage"] == 0.5
    assert row["complete"] == {"recip_rank": 0.375, "success_1": 0.25, "success_5": 0.5}
    assert row["answered"] == {"recip_rank": 0.75, "success_1": 0.5, "success_5": 1.0}


def fails(*arguments: str | Path) -> str:
    done: subprocess.CompletedProcess[str] = linker(*arguments, check=1)
    assert done.stderr.startswith("error: ") or "\nerror: " in done.stderr
    return done.stderr


def test_errors_name_the_remedy(raw: Path) -> None:
    en = raw / "en"
    base = ("link", en, en, "--out", raw / "o.run")
    assert "--dictionary" in fails(*base, "--method", "dictionary")
    assert "--pivot" in fails(*base, "--method", "pivot")
    assert "--encoder" in fails(*base, "--method", "encoder")
    assert "fr-en" in fails(*base, "--method", "hapax", "--languages", "french")
    assert not (raw / "o.run").exists()
    (raw / "q").write_text("x 0 y 1\n")
    assert "do the ids agree" in fails(*base, "--method", "dictionary", "--train", raw / "q")
    (raw / "r").write_text("z X e9 1 .9 x\n")
    assert "do the ids agree" in fails("bucc", "evaluate", raw / "q", "--run", raw / "r")


def test_the_command_offers_every_method() -> None:
    assert set(get_args(Method)) == set(METHODS)


def test_pages_without_words_get_no_line(tmp_path: Path) -> None:
    source, target = (
        numbered(["gamma delta", "?! a b", "epsilon"], "s"),
        numbered(["gamma delta", "zeta", "..."], "t"),
    )
    for method in ("hapax",):
        run = tmp_path / method
        link_and_write(Task(source, target), method, run, k=5, name="x")
        assert [line.split()[:3] for line in run.read_text().splitlines()] == [["s0", "Q0", "t0"]]
    link_and_write(Task(numbered(["?"], "s"), target), "hapax", tmp_path / "none", k=5, name="x")
    assert (tmp_path / "none").read_text() == ""


@pytest.mark.parametrize(
    ("method", "unused"),
    [
        ("hapax", "`weighting`, `dictionary`, `train`"),
        ("dictionary", "`ngrams`"),
        ("auto", "`weighting`, `ngrams`"),
    ],
)
def test_options_that_the_method_does_not_use_are_named(
    raw: Path, method: Method, unused: str, caplog: pytest.LogCaptureFixture
) -> None:
    (raw / "q").write_text("E1 0 E2 1\n")
    commands.link(
        raw / "en", raw / "en", method, dictionary=[raw / "fr-en.tsv"], train=raw / "q", weighting="binary",
        ngrams=3,
    )  # fmt: skip
    assert f"the method {method!r} does not use {unused}" in caplog.messages


def test_no_output_takes_the_place_of_an_input_or_of_another_output(raw: Path) -> None:
    en, words = raw / "en", raw / "fr-en.tsv"
    base = ("link", en, en, "--method", "dictionary", "--dictionary", words)
    before = words.read_bytes()
    assert "is also an input" in fails(*base, "--out", en / ".." / "fr-en.tsv")
    assert words.read_bytes() == before
    assert "is a folder" in fails(*base, "--out", raw)
    assert "there is no folder" in fails(*base, "--out", raw / "none" / "r.run")
    auto = ("link", en, en, "--method", "auto", "--out", raw / "a.jsonl")
    assert "is also the file of --out" in fails(*auto, "--uncertain", raw / "a.jsonl")
    assert "is also an input" in fails("bucc", "dictionary", en, words, "--out", words)
    assert "is also an input" in fails("align", words, en, en, "--out", words)


@pytest.mark.parametrize("out", ["-", "/dev/stdout"])
def test_a_run_on_stdout_follows_what_is_there_and_leaves_nothing_beside(raw: Path, out: str) -> None:
    with (raw / "log").open("ab") as log:
        log.write(b"before\n")
        log.flush()
        command = [sys.executable, "-m", "linker", "link", "en", "en", "--method", "auto", "--out", out]
        subprocess.run(command, cwd=raw, stdout=log, stderr=subprocess.PIPE, check=True)
    lines = (raw / "log").read_text().splitlines()
    assert lines[0] == "before" and len(lines) > 8 and len(lines[1].split()) == 6
    assert not [
        path
        for path in (*raw.iterdir(), *Path("/dev").glob("stdout?*"))
        if path.name.startswith(("-", "stdout"))
    ]
    for option in ("--explain", "--resume"):
        assert f"{option} " in fails("link", raw / "en", raw / "en", "--method", "auto", "--out", out, option)


def test_links_of_unknown_pages_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source, target = numbered(["eins", "zwei"], "s"), numbered(["one", "two"], "t")
    qrels = tmp_path / "q"
    qrels.write_text("s0 0 t1 1\ns1 0 t7 1\nnobody 0 t0 1\ns1 0 t0 0\n")
    with caplog.at_level("INFO", "linker"):
        assert read_links(qrels, source, target).tolist() == [[0, 1]]
    assert "2 of 3 links name a text that is not here" in caplog.text and "nobody t0" in caplog.text
    caplog.clear()
    qrels.write_text("s0 0 t1 1\n")
    read_links(qrels, source, target)
    assert not caplog.text


def test_a_repeated_link_is_dropped_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source, target = numbered(["eins", "zwei"], "s"), numbered(["one", "two"], "t")
    qrels = tmp_path / "q"
    qrels.write_text("s0 0 t1 1\ns1 0 t0 1\ns0 0 t1 1\ns0 0 t1 1\n")
    assert read_links(qrels, source, target).tolist() == [[0, 1], [1, 0]]
    assert "q:3: repeats the judgement in " in caplog.text and "dropped 2 repeated lines" in caplog.text
    qrels.write_text("s0 0 t1 1\ns0 0 t1 0\n")
    with pytest.raises(InputError, match="occurs twice"):
        read_links(qrels, source, target)


class Counting:
    """An encoder that counts letters."""

    dim = 26
    fingerprint = "counting"

    def encode(self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False) -> Float32Array:
        rows = [[text.lower().count(chr(97 + i)) for i in range(26)] for text in texts]
        vectors = np.array(rows, np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return vectors


def test_chunks_cut_at_blanks_and_wide_characters_count_four() -> None:
    assert chunks("aa bb cc", 5) == ["aa bb", "cc"]
    assert chunks("aaaaaaa", 5) == ["aaaaa", "aa"]
    assert chunks("中文中文 ab", 9) == ["中文", "中文", "ab"]
    assert chunks("  ") == []
    text = "word " * 700
    assert " ".join(chunks(text)) == text.strip()
    assert max(map(len, chunks(text))) <= 1000


def test_a_page_of_many_chunks_is_their_mean() -> None:
    long = "ab " * 333 + "cd " * 333  # 999 letters each
    vectors = encode_pages(Counting(), [long, "", "ab"])
    assert vectors[0] == pytest.approx(np.array([0.5] * 4 + [0] * 22, np.float32), abs=1e-6)
    assert not vectors[1].any()
    assert np.linalg.norm(vectors[2]) == pytest.approx(1)


def test_a_table_without_its_columns_is_explained_with_the_options(raw: Path, tmp_path: Path) -> None:
    table, out = tmp_path / "pages.csv", tmp_path / "out.tsv"
    table.write_text("what,words\n1,some words\n", encoding="utf-8")
    for command in (("align", raw / "q", table, table), ("bucc", "dictionary", table, raw / "q")):
        said = fails(*command, "--out", out)
        assert "no column _id or id" in said and said.rstrip().endswith("rename one in the file")
    said = fails("link", table, table, "--out", tmp_path / "out.run")
    assert "(--id-column, --text-column, --title-column)" in said and "--header-row" in said


def test_a_missing_side_is_said_before_the_other_is_read(raw: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages.csv"
    pages.write_text("this is read only later\n", encoding="utf-8")
    assert "no such file or folder: nowhere" in fails("link", pages, "nowhere", "--out", tmp_path / "r")


def test_a_name_of_another_kind_of_file_is_wrong_usage(raw: Path, tmp_path: Path) -> None:
    done = linker("link", raw / "p", raw / "p", "--out", tmp_path / "links.docx", check=2)
    assert ".csv, .xlsx, .jsonl for a table" in done.stderr
    with pytest.raises(UsageError, match=r"links\.docx"):
        LinkOptions("a", "b", out="links.docx")
