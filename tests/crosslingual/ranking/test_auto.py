"""`auto` and `cascade` end to end on two synthetic languages, and their pitfalls."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from linker.base.errors import InputError
from linker.corpora.dictionaries import Dictionary
from linker.crosslingual.learned_methods import by_auto, by_cascade
from linker.crosslingual.methods import link
from linker.crosslingual.options import Options, TopicLearning
from linker.crosslingual.pages.languages import language
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.ranking.auto import solve
from linker.crosslingual.ranking.evidence import AllEvidence, overlapping
from linker.crosslingual.task import LinkingResult, Task
from tests.crosslingual.synthetic import Twin, twin

pytestmark = pytest.mark.usefixtures("divided_once")


@pytest.fixture(scope="module")
def corpus() -> Twin:
    return twin(pages=150)


def task(corpus: Twin, known: int = 0, dictionary: bool = False, options: Options | None = None) -> Task:
    words = (Dictionary(Path("made.tsv"), "tsv", corpus.dictionary),) if dictionary else ()
    return Task(corpus.source, corpus.target, words, corpus.links[:known], options=options or Options())


def right(corpus: Twin, links: LinkingResult, known: int) -> float:
    """Share of the unknown pages whose first target is right."""
    gold = dict(corpus.links.tolist())
    rows = range(known, len(corpus.source))
    return float(np.mean([links.candidates.targets[row, 0] == gold[row] for row in rows]))


@pytest.fixture(scope="module")
def from_links(corpus: Twin) -> LinkingResult:
    return link(task(corpus, known=100, options=Options(explain=True, self_train=False)), "auto")


def test_links_alone_give_probabilities_and_no_target_twice(corpus: Twin, from_links: LinkingResult) -> None:
    assert right(corpus, from_links, 100) > 0.9
    assert from_links.metadata["learned_word_pairs"] > 20
    assert from_links.metadata["transductive"] is True
    assert "training" not in from_links.metadata["uses_unlinked_pages"]
    targets = from_links.candidates.targets
    assert (targets[:100] == -1).all()
    assert not np.isin(targets[100:], corpus.links[:100, 1]).any()
    scores = from_links.candidates.scores[100:]
    assert ((scores[:, 0] > 0) & (scores[:, 0] <= 1)).all()
    assert (np.diff(scores[:, :5], axis=1) < 0).all()
    first = from_links.candidates.targets[100:, 0]
    assert len(set(first.tolist())) == len(first)


def test_explanations_name_true_word_pairs(corpus: Twin, from_links: LinkingResult) -> None:
    records = list(from_links.explanations or ())
    assert len(records) == 50
    pairs = set(corpus.dictionary)
    matches = [(s, t) for r in records for s, t, kind, _ in r["matches"] if kind == "links"]
    assert len(matches) > 50
    assert np.mean([m in pairs for m in matches]) > 0.8
    assert all(0 <= r["probability"] <= 1 and 0 <= r["no_link_probability"] <= 1 for r in records)


def test_a_dictionary_alone_is_enough(corpus: Twin) -> None:
    links = link(task(corpus, dictionary=True), "auto")
    assert right(corpus, links, 0) > 0.9


def test_unsure_pages_get_no_link(corpus: Twin) -> None:
    options = Options(min_probability=0.9, explain=True)
    lonely = replace(
        corpus.source,
        ids=(*corpus.source.ids, "alone"),
        texts=(*corpus.source.texts, "quite other words than anywhere else"),
    )
    links = by_auto(replace(task(corpus, known=100, options=options), source=lonely))
    assert "alone" in links.metadata["no_link"]
    assert links.candidates.targets[-1].tolist() == [-1] * links.candidates.targets.shape[1]
    gold = dict(corpus.links.tolist())
    linked = [row for row in range(100, 150) if links.candidates.targets[row, 0] >= 0]
    assert linked and np.mean([links.candidates.targets[row, 0] == gold[row] for row in linked]) >= 0.9
    records = list(links.explanations or ())
    assert [r["link"] for r in records if r["id"] == "alone"] == [None]
    documents = {page: (target, p) for page, target, p in links.proposed}
    for record in records:  # says what was probable, but not enough
        assert (
            (record["link"] is None) == (record["id"] in links.metadata["no_link"]) == ("candidate" in record)
        )
        assert (record["link"] or record["candidate"], record["probability"]) == documents[record["id"]]


def test_a_page_below_the_threshold_keeps_its_passage(corpus: Twin) -> None:
    options = Options(min_probability=1.0, self_train=False)
    found = [
        link(task(corpus, known=100, options=o), "auto")
        for o in (options, replace(options, min_probability=0))
    ]
    assert len(found[0].metadata["no_link"]) == 50
    strict, lenient = ([one.passage(page) for page, *_ in one.proposed] for one in found if one.passage)
    assert strict == lenient


def test_self_training_is_marked_and_does_no_harm(corpus: Twin) -> None:
    links = link(task(corpus, known=40), "auto")
    assert links.metadata["uses_unlinked_pages"][-1] == "training"
    plain = link(task(corpus, known=40, options=Options(self_train=False)), "auto")
    assert right(corpus, links, 40) >= right(corpus, plain, 40) - 0.03


@pytest.mark.parametrize("topics", ["variational", "gibbs"])
def test_the_cascade_learns_from_links(corpus: Twin, topics: TopicLearning) -> None:
    links = by_cascade(task(corpus, known=100, options=Options(topics=topics)))
    assert right(corpus, links, 100) > 0.8
    assert links.metadata["topics"] == topics


def test_what_is_missing_is_named(corpus: Twin) -> None:
    with pytest.raises(InputError, match="`train` QRELS"):
        by_cascade(task(corpus, dictionary=True))
    with pytest.raises(InputError, match="at least 20"):
        by_cascade(task(corpus, known=5))


def test_nothing_in_common_scores_at_chance() -> None:
    """Gold on the diagonal, no shared words, no other signal: a leak of the input order would find it."""
    n = 80
    source = Pages(tuple(f"a{i}" for i in range(n)), ("",) * n, language("und"))
    target = Pages(tuple(f"b{i}" for i in range(n)), ("",) * n, language("und"))
    answer = solve(AllEvidence(source, target, (("x", "y"),)), np.empty((0, 2), np.int64))
    _, best, p = answer.best()
    assert (best == np.arange(n)).mean() < 0.1
    assert p.max() < 0.5


def test_chinese_is_covered_without_segmentation() -> None:
    found = overlapping("操作系统 kernel", language("zh"), frozenset({"操作系统"}))
    assert found == ["kernel", "操作", "作系", "系统", "操作系统"]
