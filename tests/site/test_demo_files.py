"""The files that the tutorials start from: every story once in each role, and disjoint splits."""

import csv
import json
from pathlib import Path

import pytest

from linker.demo.files import ABOUT, write_files
from linker.demo.training import lee_stories
from linker.evaluation.reading.trec import read_qrels


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("gensim")
    write_files(tmp_path)
    return tmp_path


def links(path: Path) -> set[tuple[str, str]]:
    with path.open(encoding="utf-8") as file:
        return {(row["query-id"], row["corpus-id"]) for row in csv.DictReader(file, delimiter="\t")}


def test_counts_are_those_of_the_files(tmp_path: Path) -> None:
    pytest.importorskip("gensim")
    for name, count in write_files(tmp_path).items():
        lines = (tmp_path / name).read_text(encoding="utf-8").splitlines()
        assert len(lines) - (not name.endswith(".jsonl")) == count > 0


def test_posts_and_articles_are_the_two_parts_of_the_stories(folder: Path) -> None:
    background, test = lee_stories()
    stories = {s.id: s for s in (*background, *test)}
    with (folder / "posts.csv").open(encoding="utf-8", newline="") as file:
        assert {row["post_id"]: row["text"] for row in csv.DictReader(file)} == {
            f"p-{id_}": story.opening for id_, story in stories.items()
        }
    with (folder / "articles.csv").open(encoding="utf-8", newline="") as file:
        assert {row["id"]: row["text"] for row in csv.DictReader(file)} == {
            f"a-{id_}": stories[id_].rest for id_ in ABOUT
        }
    lines = (folder / "beir" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    assert {(r := json.loads(line))["_id"]: r["text"] for line in lines} == {
        f"a-{id_}": story.rest for id_, story in stories.items()
    }


def test_splits_link_each_post_to_its_article_once(folder: Path) -> None:
    splits = [links(folder / "beir" / "qrels" / f"{name}.tsv") for name in ("train", "dev", "test")]
    together = set.union(*splits)
    assert len(together) == sum(map(len, splits))
    assert all(post[2:] == article[2:] and (post[0], article[0]) == ("p", "a") for post, article in together)
    assert read_qrels(folder / "beir" / "qrels" / "test.tsv")
