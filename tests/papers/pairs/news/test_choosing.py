"""The epochs chosen on held-out pairs, how these are held out, and serious mistakes."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linker.base.errors import InputError
from linker.evaluation.correlation import pearson
from linker.papers.news.articles import Article, NewsPair, targets
from linker.papers.news.choosing import best_epochs, stratified_split
from linker.papers.news.mistakes import mistakes
from linker.papers.news.recognise import Recogniser
from linker.papers.news.siamese import RememberingEncoder, SiameseConfig, cosines, train_frozen
from linker.papers.news.similarity import examples
from linker.papers.news.similarity_config import PRESETS, SimilarityConfig, configure
from linker.papers.news.similarity_report import agree
from tests.helpers import HashEncoder, tiny_bert
from tests.papers.pairs.news.news_data import STORIES, news, pipeline

BASE = RememberingEncoder(HashEncoder(16))


@given(st.integers(10, 40), st.integers(0, 5), st.sampled_from([0.1, 0.2, 0.5]))
def test_no_article_is_on_both_sides_and_every_language_pair_gives_its_share(
    count: int, seed: int, share: float
) -> None:
    pairs = [*news(count, seed), *news(count, seed + 1, language="de")]
    pairs = [dataclasses.replace(pair, id=str(n)) for n, pair in enumerate(pairs)]
    pairs.append(NewsPair("again", pairs[0].first, pairs[1].second, 2.0))
    rest, dev = stratified_split(pairs, share, seed)
    assert sorted(p.id for p in (*rest, *dev)) == sorted(p.id for p in pairs)
    texts = [{a.full for p in side for a in (p.first, p.second)} for side in (rest, dev)]
    assert not texts[0] & texts[1]
    for kind in ("en-en", "de-en"):
        held, every = sum(p.kind == kind for p in dev), sum(p.kind == kind for p in pairs)
        assert share * every - 3 <= held <= share * every + 1


def test_too_few_pairs_are_refused() -> None:
    with pytest.raises(InputError, match=r"too few to hold out 0\.2"):
        stratified_split(news(2), 0.2, 0)


def test_the_epochs_are_those_of_the_best_figure_on_held_out_pairs() -> None:
    config = SimilarityConfig(siamese=SiameseConfig(epochs=4, batch_size=8, lr=3e-2))
    pairs = news(60)
    epochs, found = best_epochs(pairs, config, 0.2, BASE)
    assert len(found) == 4
    assert epochs == 1 + int(np.argmax(found))
    rest, dev = stratified_split(pairs, 0.2, 0)
    once = train_frozen(BASE, examples(rest), dataclasses.replace(config.siamese, epochs=1))
    r = pearson(cosines(once, [p.first.full for p in dev], [p.second.full for p in dev]), targets(dev))
    assert found[0] == pytest.approx(r)


def test_a_tuned_encoder_is_judged_after_each_epoch_and_by_adam_in_the_paper(tmp_path: Path) -> None:
    tiny = tiny_bert(tmp_path / "tiny", [word for story in STORIES for word in story.split()])
    asked = {"backbone": str(tiny), "epochs": 2, "max_length": 32}
    paper = configure("paper", asked)
    assert (paper.siamese.optimizer, paper.siamese.warmup) == ("adam", 0.0)
    assert PRESETS["paper_code"].siamese.optimizer == "adam"
    assert configure("recommended", {"frozen": False}).siamese.optimizer == "adamw"
    epochs, found = best_epochs(news(24), paper, 0.25)
    assert len(found) == 2
    assert epochs in (1, 2)


PAIRS = [
    NewsPair("a", Article("one", "", "de"), Article("two", "", "en"), 1.0),
    NewsPair("b", Article("Acme in London", "", "en"), Article("Acme and Globex", "", "en"), 4.0),
    NewsPair("c", Article("x"), Article("y"), 2.0),
    NewsPair("d", Article("x"), Article("z")),
]


def test_mistakes_are_listed_worst_first_with_the_entities_of_both_sides(tmp_path: Path) -> None:
    scores = np.array([2.5, 1.0, 3.4, 4.0])
    found = mistakes(PAIRS, scores, 1.5, Recogniser({"": str(pipeline(tmp_path / "ner"))}))
    assert [(m.id, m.human, m.predicted) for m in found] == [("b", 4.0, 1.0), ("a", 1.0, 2.5)]
    assert (found[0].first, found[0].second) == (["GEO london", "ORG acme"], ["ORG acme", "ORG globex"])
    assert "people 4.00, predicted 1.00\n  1: GEO london, ORG acme" in found[0].text()
    assert [m.first for m in mistakes(PAIRS, scores, 1.5)] == [[], []]
    assert mistakes(PAIRS, scores, 3.1) == []


def test_means_are_over_language_pairs_of_one_language_and_of_two() -> None:
    pairs = [
        NewsPair(f"{kind}{n}", Article("x", "", kind[:2]), Article("y", "", kind[3:]), 1 + n)
        for kind in ("en-en", "de-de", "de-en")
        for n in (0, 1, 2, 3)
    ]
    values = np.array([1, 0.6, 0.3, 0, 0.2, 0.1, 0.5, 0.1, 0, 0.3, 0.6, 1])
    result = agree(pairs, {"s": values})
    r = result.by_kind["s"]
    assert result.means["s"]["monolingual"] == pytest.approx((r["en-en"] + r["de-de"]) / 2)
    assert result.means["s"]["cross-language"] == pytest.approx(r["de-en"])
    assert f"mean of cross-language pairs: s {r['de-en']:.3f}" in result.text()
