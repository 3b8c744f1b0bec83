"""n:1 and 1:n links, in training and in the result; contradictory options."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from indexes.dtypes import Int64Array
from linker.base.errors import InputError
from linker.corpora.dictionaries import Dictionary
from linker.crosslingual.cardinality import choose_links
from linker.crosslingual.methods import link
from linker.crosslingual.options import Options
from linker.crosslingual.pages.languages import language
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.ranking.learning import once_per_target
from linker.crosslingual.scoring.candidates import Candidates
from linker.crosslingual.task import Task
from linker.scoring.probability.competition import ANY, compete, softmax
from linker.scoring.ranking.lists import CandidateLists
from tests.crosslingual.synthetic import Twin, twin
from tests.crosslingual.tiny import numbered

pytestmark = pytest.mark.usefixtures("divided_once")
KNOWN = 60


def halves(text: str) -> tuple[str, str]:
    words = text.split()
    return " ".join(words[::2]), " ".join(words[1::2])


@pytest.fixture(scope="module")
def base() -> Twin:
    return twin(pages=50, extra=60, length=120)


@pytest.fixture(scope="module")
def many(base: Twin) -> Task:
    """Each source page is split into two halves with the same target: 100 pages, n:1."""
    texts = [half for text in base.source.texts for half in halves(text)]
    source = numbered(texts, "s")
    links = np.repeat(base.links, 2, axis=0)
    links[:, 0] = np.arange(len(texts))
    return Task(source, base.target, (Dictionary(Path("m.tsv"), "tsv", base.dictionary),), links)


@pytest.fixture(scope="module")
def several(base: Twin) -> Task:
    """Each target page is split into two halves, so that a source page has two targets: 1:n."""
    target = numbered([half for text in base.target.texts for half in halves(text)], "t")
    links = np.repeat(base.links, 2, axis=0)
    links[:, 1] = links[:, 1] * 2 + np.tile([0, 1], len(base.links))
    return Task(base.source, target, (Dictionary(Path("m.tsv"), "tsv", base.dictionary),), links)


def right(task: Task, gold: Int64Array, rows: range, **options: object) -> float:
    """Share of the source `rows` whose first target is one of their gold ones."""
    known = gold[~np.isin(gold[:, 0], rows)]
    asked = replace(task, train=known, options=Options(**options))  # type: ignore[arg-type]  # any
    first = link(asked, "auto").candidates.targets[:, 0]
    pairs = {tuple(pair) for pair in gold.tolist()}
    return float(np.mean([(row, first[row]) in pairs for row in rows]))


def test_many_pages_may_share_a_target(many: Task) -> None:
    """The last 20 pages are halves of ten pages: one-to-one can give only ten of them their target."""
    rows = range(80, 100)
    assert right(many, many.train, rows, links="many-to-one") > 0.8
    assert right(many, many.train, rows) <= 0.65


def test_a_target_that_is_known_can_be_linked_again(many: Task) -> None:
    """The first half of each page is known; the second must be linked to the same target."""
    gold = many.train
    known, rows = gold[::2], np.arange(1, 100, 2)
    first = link(replace(many, train=known, options=Options(links="many-to-one")), "auto").candidates.targets
    assert np.mean(first[rows, 0] == gold[rows, 1]) > 0.8
    alone = link(replace(many, train=known), "auto").candidates.targets
    assert not np.isin(alone[rows], gold[:, 1]).any()


def test_a_page_lists_all_its_targets(several: Task, base: Twin) -> None:
    gold, rows = several.train, range(35, 50)
    known = gold[gold[:, 0] < 35]
    options = Options(links="one-to-many", min_probability=0.4)
    found = link(replace(several, train=known, options=options), "auto").candidates
    pairs = {tuple(pair) for pair in gold.tolist()}
    listed = [(row, t) for row in rows for t in found.targets[row].tolist() if t >= 0]
    hits = sum(pair in pairs for pair in listed)
    assert hits / len(listed) > 0.8  # precision
    assert hits / (2 * len(rows)) > 0.7  # recall; with one target per page, at most .5
    targets = [t for _, t in listed]
    assert len(targets) == len(set(targets))
    assert (found.scores[found.targets >= 0] >= 0.4 - 1e-6).all()


def test_a_page_is_listed_once_per_target() -> None:
    """Page 7 has the targets 3 and 5, page 8 the target 4, page 9 no target in its list."""
    targets = np.array([[3, 1, 5, 2], [0, 4, 1, 2], [0, 1, 2, 3]])
    lists = CandidateLists(np.array([7, 8, 9]), targets, targets[:, :, None].astype(np.float32), ("id",))
    without = replace(lists, targets=targets + 10)
    links = np.array([[7, 3], [7, 5], [8, 4], [9, 9]])
    fold = once_per_target(lists, without, links)
    assert fold.lists.rows.tolist() == [7, 7, 8, 9] == fold.without.rows.tolist()
    assert fold.lists.targets.tolist() == [[3, 1, 2, 2], [2, 1, 5, 2], [0, 4, 1, 2], [0, 1, 2, 3]]
    assert fold.right.tolist() == [0, 2, 1, -1]
    assert (fold.lists.features[:, :, 0] == fold.lists.targets).all()
    single = once_per_target(lists, without, links[[0, 2, 3]])
    assert single.lists is lists
    assert single.right.tolist() == [0, 1, -1]


def candidates(targets: list[list[int]], scores: list[list[float]]) -> Candidates:
    return Candidates(np.array(targets), np.array(scores, np.float32))


def pages(n: int, prefix: str) -> Pages:
    return Pages(
        tuple(f"{prefix}{i}" for i in range(n)), tuple(f"{prefix} {i}" for i in range(n)), language("und")
    )


def test_a_target_stays_with_its_best_page_unless_it_may_be_shared() -> None:
    ranking = candidates([[0, 1], [0, -1]], [[0.6, 0.3], [0.8, -np.inf]])
    ours, theirs = pages(2, "s"), pages(2, "t")
    assert choose_links(ranking, "one-to-many", ours, theirs)[0].targets.tolist() == [[1, -1], [0, -1]]
    assert choose_links(ranking, "many-to-many", ours, theirs)[0].targets[:, 0].tolist() == [0, 0]
    assert choose_links(ranking, "one-to-one", ours, theirs)[0].targets.tolist() == [[1, 0], [0, -1]]
    assert choose_links(ranking, "many-to-one", ours, theirs)[0].targets.tolist() == [[0, 1], [0, -1]]


def test_without_competition_probabilities_are_the_softmax() -> None:
    logits = np.log(np.array([[0.9, 0.1], [0.8, 0.2]]))
    targets = np.array([[0], [0]])
    np.testing.assert_allclose(compete(logits, targets, ANY), softmax(logits))
    assert compete(logits, targets)[:, 0].sum() == pytest.approx(1, abs=0.01)


def test_a_method_that_does_not_learn_assigns_targets_only_if_asked() -> None:
    base = twin(pages=30, extra=0, length=30)
    task = Task(base.source, base.target, (Dictionary(Path("m.tsv"), "tsv", base.dictionary[::9]),))
    assigned = link(replace(task, options=Options(links="one-to-one")), "dictionary")
    assert assigned.metadata["cardinality"] == "one-to-one"
    free = link(replace(task, options=Options(links="many-to-one")), "dictionary").candidates
    assert (free.targets == link(task, "dictionary").candidates.targets).all()
    assert (free.targets != assigned.candidates.targets).any()


@pytest.mark.parametrize(
    ("method", "options", "why"),
    [
        ("hapax", Options(links="many-to-one"), "one to one"),
        ("dictionary", Options(links="one-to-many", min_probability=0), "needs probabilities"),
        ("auto", Options(links="one-to-many"), "give `min_probability`"),
    ],
)
def test_contradictions_are_refused(method: str, options: Options, why: str) -> None:
    task = Task(pages(2, "s"), pages(2, "t"), options=options)
    with pytest.raises(InputError, match=why):
        link(task, method)
