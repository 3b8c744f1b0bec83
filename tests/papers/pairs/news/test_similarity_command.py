"""`linker similarity` as docs/similarity.md shows it, and its error messages."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import ROOT, linker, tiny_bert, write_json_lines
from tests.papers.pairs.news.news_data import STORIES, news, pipeline, write

PAGE = (ROOT / "docs" / "similarity.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pairs, a pipeline and a tiny transformer."""
    folder = tmp_path_factory.mktemp("similarity")
    write(folder / "train.jsonl", news(16))
    write(folder / "test.jsonl", news(10, 1))
    pipeline(folder / "ner")
    tiny_bert(folder / "tiny", [word for story in STORIES for word in story.split()])
    return folder


def options(setting: Path) -> list[str | Path]:
    return ["--preset", "paper", "--backbone", setting / "tiny", "--epochs", "1", "--folds", "2",
            "--max-length", "32", "--ner", str(setting / "ner")]  # fmt: skip


def test_train_predict_evaluate_with_sampled_and_translated_pairs(setting: Path, tmp_path: Path) -> None:
    table = tmp_path / "mt.jsonl"
    entries = [
        {"source": "en", "target": "fr", "text": text, "translation": f"le {text}"}
        for pair in news(16)
        for text in (pair.second.text, pair.second.title)
    ]
    write_json_lines(table, entries)
    train, test = setting / "train.jsonl", setting / "test.jsonl"
    entities, model, scores = (tmp_path / name for name in ("entities.jsonl", "model", "scores.tsv"))
    done = linker(
        "similarity", "train", train, "--out", model, *options(setting), "--entities", entities,
        "--neighbours", "2", "--translator", table, "--to", "fr", "--mt-label", "copy",
    )  # fmt: skip
    assert done.stdout.strip() == str(model)
    found = re.search(r"training again with (\d+) more pairs", done.stderr)
    assert found is not None
    assert int(found[1]) > 8
    assert entities.stat().st_size > 1000
    assert f"and {found[1]} pseudo-labelled" in (model / "README.md").read_text(encoding="utf-8")
    linker("similarity", "predict", model, test, "--out", scores, "--entities", entities)
    assert len(scores.read_text(encoding="utf-8").splitlines()) == 11
    result = json.loads(linker("similarity", "evaluate", test, scores, "--json").stdout)
    assert set(result["pearson"]) == {"scores", "GEO", "ORG", "QTY", "cosine"}  # not DAY: all are Mondays
    assert result["pairs"] == 10
    assert "> cosine" in linker("similarity", "evaluate", test, scores).stdout.replace("cosine >", "> cosine")


def test_pairs_that_are_left_out_are_counted_and_have_no_score(setting: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    linker("similarity", "train", setting / "train.jsonl", "--out", model, *options(setting))
    path = tmp_path / "pairs.jsonl"
    lines = (setting / "test.jsonl").read_text(encoding="utf-8").splitlines()[:2]
    path.write_text("\n".join([*lines, '{"_id": "e", "text1": "", "text2": "b"}']), encoding="utf-8")
    done = linker("similarity", "predict", model, path)
    assert "1 pair has an empty article: no score" in done.stderr
    assert done.stdout.splitlines()[3].strip() == "e"
    done = linker("similarity", "train", setting / "train.jsonl", "--out", model, check=1)
    assert "exists: remove it" in done.stderr
    path.write_text(
        '{"_id": "s", "text1": "Acme in London", "text2": "Acme grows in London"}', encoding="utf-8"
    )
    done = linker("similarity", "predict", model, path, "--json")
    assert "1 pair has an article of fewer than 10 words: a less reliable score" in done.stderr
    assert 1 <= json.loads(done.stdout)["score"][0] <= 4


def test_scores_are_explained_without_entities_and_calibrated(setting: Path, tmp_path: Path) -> None:
    model, test, scores = tmp_path / "model", setting / "test.jsonl", tmp_path / "scores.tsv"
    done = linker(
        "similarity",
        "train",
        setting / "train.jsonl",
        "--out",
        model,
        *options(setting),
        "--dev-share",
        "0.25",
    )
    assert "epochs: 1, by r on held-out pairs after each: " in done.stderr
    linker("similarity", "predict", model, test, "--out", scores, "--explain")
    header, first, *_ = (line.split("\t") for line in scores.read_text(encoding="utf-8").splitlines())
    assert header[-2:] == ["shared entities", "shared words"]
    assert "DATE: monday" in first[-2]
    assert "Monday" in first[-1]
    assert json.loads(linker("similarity", "evaluate", test, scores, "--json").stdout)["pairs"] == 10
    table = json.loads(
        linker("similarity", "calibrate", test, scores, "--precision", "0.01", "--json").stdout
    )
    assert table["pairs"] == 10
    assert table["rows"][-1]["recall"] == 1
    assert table["with_precision"] == table["rows"][-1]["score"]
    assert "best F1" in linker("similarity", "calibrate", test, scores).stdout
    shown = json.loads(
        linker("similarity", "predict", model, test, "--no-entities", "--explain", "--json").stdout
    )
    assert len(set(shown["GEO"])) == 1  # nothing is known about this group
    assert shown["shared"][0]["entities"] == {}
    assert shown["shared"][0]["words"]


def test_foreign_articles_are_compared_in_english_and_sampled_from_a_pool(
    setting: Path, tmp_path: Path
) -> None:
    (tmp_path / "xx-en.tsv").write_text("lundun\tLondon\nmontag\tMonday\n", encoding="utf-8")
    lines = (setting / "train.jsonl").read_text(encoding="utf-8").replace("London", "Lundun")
    pairs = [
        json.loads(line.replace("Monday", "Montag")) | {"lang1": "xx", "lang2": "xx"}
        for line in lines.splitlines()
    ]
    train = tmp_path / "train.jsonl"
    write_json_lines(train, pairs)
    pool = tmp_path / "pool.jsonl"
    pool.write_text(json.dumps({"id": "x", "text": f"{STORIES[0]} {STORIES[1]}"}) + "\n", encoding="utf-8")
    model, kept = tmp_path / "m", tmp_path / "kept.jsonl"
    translate = ["--translate", f"xx=dictionary:{tmp_path}/{{source}}-{{target}}.tsv"]
    done = linker("similarity", "train", train, "--out", model, *options(setting), "--neighbours", "1",
                  *translate, "--pool", pool, "--translations", kept)  # fmt: skip
    assert "training again with" in done.stderr
    assert kept.stat().st_size > 1000
    found = json.loads(linker("similarity", "predict", model, train, "--explain", "--json").stdout)
    named = [row["entities"].get("DATE") for row in found["shared"]]
    assert named.count(["monday"]) > 8  # from the translator that the model names
    done = linker("similarity", "predict", model, train, "--translate", "none.tsv", check=1)
    assert "cannot read none.tsv" in done.stderr


def test_a_model_without_entities_needs_no_pipeline(setting: Path, tmp_path: Path) -> None:
    given = [*options(setting)[:-2], "--ner", "no_pipeline", "--no-entities"]
    linker("similarity", "train", setting / "train.jsonl", "--out", tmp_path / "m", *given)
    assert "It looks for no entities" in (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    found = json.loads(
        linker("similarity", "predict", tmp_path / "m", setting / "test.jsonl", "--json").stdout
    )
    assert "GEO" not in found
    assert len(found["score"]) == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ner", "no_pipeline"], "there is no spaCy pipeline 'no_pipeline'"),
        (["--backbone", "./nowhere"], "there is no model folder ./nowhere"),
        (["--backbone", "no/model"], "there is no backbone 'no/model'"),
        (["--ner", "de=x"], "no spaCy pipeline for articles in 'en'"),
        (["--translator", "none.tsv", "--to", "fr"], "cannot read none.tsv"),
        (["--neighbours", "2", "--elastic", "http://127.0.0.1:9"], "127.0.0.1:9"),
    ],
)
def test_mistakes_are_one_line_that_says_what_to_do(
    setting: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    given = options(setting)
    for name in ("--ner", "--backbone"):
        if name in arguments:
            place = given.index(name)
            del given[place : place + 2]
    done = linker(
        "similarity", "train", setting / "train.jsonl", "--out", tmp_path / "m", *given, *arguments, check=1
    )
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert not (tmp_path / "m").exists()


def test_a_bad_pair_is_named(setting: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"text1": "a", "overall": 1}\n', encoding="utf-8")
    done = linker("similarity", "train", path, "--out", tmp_path / "m", check=1)
    assert done.stderr.startswith(f"error: {path}:1: one article is missing: there is no text2")
    path.write_text('{"text1": "a", "text2": "b", "overall": 1}\n', encoding="utf-8")
    done = linker("similarity", "train", path, "--out", tmp_path / "m", check=1)
    assert "no pair has 10 words on both sides" in done.stderr


@pytest.mark.slow
def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "train.jsonl", news(16))
    write(tmp_path / "test.jsonl", news(10, 1))
    monkeypatch.chdir(tmp_path)
    printed = []
    for line in "".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)).splitlines():
        program, *arguments = shlex.split(line)
        assert program == "linker"
        printed.append(linker(*arguments).stdout)
    assert any(len(json.loads(text).get("williams", [])) > 5 for text in printed if text.startswith("{"))
    assert "precision of at least 0.5: a score of at most" in printed[-1]
    (python,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(python, names)
    assert len(names["pairs"]) == 16


def test_a_backbone_that_cannot_be_had_is_said_before_any_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The paper's LaBSE: an error message, before pairs are read and searched for entities."""
    from linker.base.errors import InputError
    from linker.papers.commands.similarity import train

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(
        InputError, match=r"there is no backbone 'sentence-transformers/LaBSE'.*HF_HUB_OFFLINE"
    ):
        train(tmp_path / "no-pairs.jsonl", tmp_path / "model", preset="paper")
