"""The guess of the job over many samples: news stories, and lists whose rows each have their own match."""

from __future__ import annotations

import gzip
import itertools
import json
import random
from collections import defaultdict
from pathlib import Path

import pytest

from linker.review.settings import guess_unit
from tests.helpers import shared_data

SIZES = (10, 15, 30, 60, 209)
WRONG = 0.05  # maximum share of the samples


def texts(path: Path) -> dict[str, str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in itertools.islice(file, 4000)]
    return {r["_id"]: f"{r.get('title', '')} {r['text']}".strip() for r in records}


def lists(folder: Path) -> tuple[list[str], list[str]]:
    return list(texts(folder / "queries.jsonl.gz").values()), list(texts(folder / "corpus.jsonl.gz").values())


def test_lists_of_rows_are_told_from_stories() -> None:
    chance, wrong = random.Random(0), []
    for name in ("tweets2claims", "statements2articles"):
        for seeds, documents in itertools.permutations(lists(shared_data(name))):
            for size in SIZES:
                sample = chance.sample(seeds, size)
                wrong.append(guess_unit(sample, documents[:1000]) != "pairs")
    assert sum(wrong) <= WRONG * len(wrong)


def test_stories_are_told_from_lists_of_rows() -> None:
    chance, wrong = random.Random(0), []
    news, stories = texts(shared_data("news-topics") / "corpus.jsonl.gz"), defaultdict(list)
    with (shared_data("news-topics") / "qrels" / "topics.tsv").open(encoding="utf-8") as rows:
        for topic, id_, *relevant in (line.split() for line in rows):
            if id_ in news and relevant[-1] != "0":
                stories[topic].append(news[id_])
    for story in list(stories.values())[::2]:
        for size in (15, 30):
            if len(story) >= size:
                wrong.append(guess_unit(chance.sample(story, size), list(news.values())[:1000]) != "topic")
    assert len(wrong) > 20
    assert sum(wrong) <= 2 * WRONG * len(wrong)


@pytest.mark.parametrize(("common", "unit"), [("flooding", "topic"), ("", "pairs")])
def test_seeds_in_another_language_than_the_documents_are_judged_by_their_own_words(
    common: str, unit: str
) -> None:
    seeds = [f"{common} {letter * 5}" for letter in "abcdefghijkl"]
    assert guess_unit(seeds, ["un texto distinto"] * 20) == unit
