"""Competition for documents: a slow oracle, invariants, worked examples, and the choice by known links."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.dtypes import Float64Array, Int64Array
from linker.scoring.probability.competition import (
    ANY,
    FEW,
    ONE,
    Capacity,
    Lists,
    compete,
    join,
    softmax,
    spread,
)
from linker.scoring.probability.deciding import Decision, Known, choose, decide, held_out

RNG = np.random.default_rng(0)


def oracle(
    logits: Float64Array, targets: Int64Array, capacity: Capacity, taken: list[int], rounds: int
) -> Float64Array:
    """Return the result of `compete`, computed document by document and text by text."""
    documents = sorted(set(targets.ravel().tolist()))
    shares = {1: capacity.one, FEW: capacity.few}
    price = {(d, size): 0.0 for d in documents for size in shares}

    def factor(d: int, size: int) -> float:
        return math.exp(-price[d, size]) if taken.count(d) < size else 0.0

    def discount(d: int) -> float:
        return sum(share * factor(d, size) for size, share in shares.items()) + capacity.many

    def probabilities() -> list[list[float]]:
        out = []
        for line, of in zip(logits.tolist(), targets.tolist(), strict=True):
            odds = [math.exp(v) * discount(d) for v, d in zip(line, of, strict=False)] + [math.exp(line[-1])]
            out.append([o / sum(odds) for o in odds])
        return out

    for _ in range(rounds):
        now = probabilities()
        new = dict(price)
        for d, size in list(price):
            room, wanted = size - taken.count(d), 0.0
            if not shares[size] or room <= 0:
                continue
            for line, of in zip(now, targets.tolist(), strict=True):
                for p, other in zip(line, of, strict=False):
                    if other == d:  # the odds if the document were known to have this size
                        odds = p / (1 - p) * math.exp(-price[d, size]) / discount(d)
                        wanted += odds / (1 + odds)
            new[d, size] = max(0.0, price[d, size] + math.log(max(wanted, 1e-9) / room))
        price = new
    return np.array(probabilities())


KINDS = [ONE, ANY, Capacity(0.6, 0.3, 0.1), Capacity(0.5, 0.5), Capacity(0.0, 1.0)]


@st.composite
def tasks(draw: st.DrawFn) -> tuple[Float64Array, Int64Array]:
    texts, candidates = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    values = st.lists(st.floats(-4, 4), min_size=candidates + 1, max_size=candidates + 1)
    logits = [draw(values) for _ in range(texts)]
    targets = [draw(st.permutations(range(5)))[:candidates] for _ in range(texts)]
    return np.array(logits), np.array(targets, np.int64)


@pytest.mark.parametrize("capacity", KINDS)
@given(task=tasks(), taken=st.lists(st.integers(0, 5), max_size=4))
@settings(max_examples=15, deadline=None)
def test_competition_is_the_oracle(
    capacity: Capacity, task: tuple[Float64Array, Int64Array], taken: list[int]
) -> None:
    found = compete(*task, capacity, np.array(taken, np.int64), rounds=4)
    np.testing.assert_allclose(found, oracle(*task, capacity, taken, 4), atol=1e-9)


@given(task=tasks())
@settings(max_examples=25, deadline=None)
def test_no_document_has_more_texts_than_its_capacity(task: tuple[Float64Array, Int64Array]) -> None:
    logits, targets = task
    for capacity, most in ((ONE, 1), (Capacity(0.0, 1.0), FEW)):
        p = compete(logits, targets, capacity, rounds=300)
        np.testing.assert_allclose(p.sum(axis=1), 1)
        assert np.bincount(targets.ravel(), p[:, :-1].ravel()).max() <= most + 0.01


@given(task=tasks(), many=st.floats(0.01, 1))
@settings(max_examples=25, deadline=None)
def test_competition_only_takes_and_takes_less_where_documents_are_shared(
    task: tuple[Float64Array, Int64Array], many: float
) -> None:
    logits, targets = task
    alone = softmax(logits)
    assert (compete(logits, targets, ANY) == alone).all()
    soft = compete(logits, targets, Capacity(1 - many, 0.0, many))
    for p in (soft, compete(logits, targets)):  # "no link" can only gain
        assert (p[:, -1] >= alone[:, -1] - 1e-9).all()
    odds = soft[:, :-1] / soft[:, -1:] / (alone[:, :-1] / alone[:, -1:])
    assert (odds >= many - 1e-9).all() and (odds <= 1 + 1e-9).all()


@given(task=tasks(), document=st.integers(0, 4))
@settings(max_examples=25, deadline=None)
def test_a_taken_document_is_for_nobody_else_or_for_as_many_as_are_left(
    task: tuple[Float64Array, Int64Array], document: int
) -> None:
    logits, targets = task
    taken = np.array([document], np.int64)
    assert (compete(logits, targets, ONE, taken)[:, :-1][targets == document] == 0).all()
    few = compete(logits, targets, Capacity(0.0, 1.0), taken, rounds=300)
    assert few[:, :-1][targets == document].sum() <= FEW - 1 + 0.01


def test_worked_numbers() -> None:
    """Two texts want one document at odds a and b: at a factor x = 1/√(ab), a x / (1 + a x) + b x / (1 + b x) = 1."""
    a, b = 9.0, 4.0
    p = compete(np.log([[a, 1.0], [b, 1.0]]), np.array([[3], [3]]), rounds=500)
    x = 1 / math.sqrt(a * b)
    assert p[:, 0] == pytest.approx([a * x / (1 + a * x), b * x / (1 + b * x)], abs=1e-6)
    assert p[:, 0] == pytest.approx([0.6, 0.4], abs=1e-6)
    assert compete(np.log([[a, 1.0], [b, 1.0]]), np.array([[3], [3]]))[:, 0] == pytest.approx(
        p[:, 0], abs=0.01
    )
    won = np.array([[0.6, 0.3, 0.0, 0.1], [0.3, 0.6, 0.05, 0.05], [0.5, 0.5, 0.0, 0.0]])
    p = spread(won, np.array([0.2, 0.9, 0.4]))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(p[0], [0.2, 0.1, 0, 0.7])
    np.testing.assert_allclose(p[1], [0.1 * 6 / 7, 0.9, 0.1 / 7, 0])
    assert p[2, 0] == 0.4 and p[2, 1] == pytest.approx(0.4)
    found = Capacity.of(np.array([1] * 7 + [2, 3, 4]))
    assert (found.one, found.few, found.many) == pytest.approx((7.5 / 11.5, 2.5 / 11.5, 1.5 / 11.5))
    short = Lists(np.array([[4]]), np.array([[1.0]]), np.array([0.2]))
    both = join(short, world(2, 1).lists)
    assert both.documents[0].tolist() == [4, -1] and both.scores[0].tolist() == [1.0, -math.inf]
    assert compete(both.logits(), both.documents)[0, 1] == 0


def world(texts: int, shared: int, seed: int = 0) -> Known:
    """Return texts, `shared` per document; for a third of them, a rival scores slightly higher."""
    rng = np.random.default_rng(seed)
    own = np.arange(texts) // shared
    documents = np.stack([own, (own + 1) % (texts // shared)], axis=1)
    scores = np.where(rng.random(texts)[:, None] < 0.34, [[0.0, 1.0]], [[3.0, 0.0]])
    links = np.stack([np.arange(texts), own], axis=1)
    order = np.argsort(rng.random(documents.shape), axis=1)  # otherwise ties would be in the right order
    documents, scores = (np.take_along_axis(values, order, 1) for values in (documents, scores))
    right, none = documents == own[:, None], np.full(texts, 0.1)
    absent = Lists(np.where(right, -1, documents), np.where(right, -np.inf, scores), none)
    return Known(Lists(documents, scores, none), right, links, absent)


NOBODY = Lists(np.empty((0, 2), np.int64), np.empty((0, 2)), np.empty(0))


def rest(known: Known, part: int) -> tuple[Known, Lists]:
    """Return the first texts as known, and the others as texts to link."""
    here = np.arange(len(known.lists)) < part
    links = known.links[here]
    some = Known(known.lists.at(here), known.relevant[here], links, known.absent.at(here))
    return some, known.lists.at(~here)


def test_one_text_for_each_document_is_found_and_decides_rightly() -> None:
    every = world(300, 1)
    known, others = rest(every, 200)
    decision = decide(others, known)
    assert decision.choice.kind in ("soft", "one-to-one")
    assert decision.choice.leads["one-to-one"][1] > 0
    alone = decide(others, known, "none")
    right = [firsts_right(d, others, np.arange(200, 300)) for d in (alone, decision)]
    assert right[0] < 0.75 and right[1] > 0.9
    assert (decision.links.sum(axis=1) + decision.none == pytest.approx(1)) and decision.links.min() >= 0
    # P(link) of held-out first candidates is calibrated
    assert decision.held.mean() == pytest.approx(decision.right.mean(), abs=0.03)


def test_texts_without_a_document_are_expected_where_lists_look_like_those_without_theirs() -> None:
    every, rng = world(600, 1), np.random.default_rng(1)
    every = replace(
        every,
        lists=replace(every.lists, none=rng.uniform(0, 0.6, 600)),
        absent=replace(every.absent, none=rng.uniform(0.3, 1, 600)),
    )
    known, others = rest(every, 400)
    orphaned = np.arange(200) % 2 == 1
    others = join(others.at(~orphaned), every.absent.at(np.arange(400, 600)[orphaned]))
    own = np.append(np.arange(400, 600)[~orphaned], np.full(100, -2))
    found, all_have = decide(others, known, "none"), decide(others, known, "none", expected=1.0)
    assert found.share is not None and found.share == pytest.approx(0.5, abs=0.1)
    assert all_have.share == 1.0
    first, right = found.links.max(axis=1), firsts_right(found, others, own)
    assert first.mean() == pytest.approx(right, abs=0.06)
    assert first[100:].mean() < 0.25 and all_have.links.max(axis=1).mean() > right + 0.15
    # a promise is tested on as many lists without their document
    assert len(found.held) == pytest.approx(400 / max(found.share, 1 - found.share), abs=2)
    assert found.right.mean() == pytest.approx(right, abs=0.06)
    few, none = (decide(others.at(some), known, "none") for some in (np.arange(20), np.arange(180, 200)))
    assert few.share is not None and none.share is not None and none.share < 0.15 < 0.85 < few.share


def test_documents_of_known_links_are_taken() -> None:
    known, others = rest(world(300, 1), 200)
    late = Lists(np.array([[0, 999]]), np.array([[1.0, 0.0]]), np.array([0.1]))  # 0 is linked, 999 is free
    for kind in (None, "one-to-one"):
        decision = decide(join(others, late), known, kind)
        assert decision.links[-1, 1] > decision.links[-1, 0]


def firsts_right(decision: Decision, lists: Lists, own: Int64Array) -> float:
    first = np.take_along_axis(lists.documents, decision.links.argmax(axis=1)[:, None], 1)[:, 0]
    return float((first == own).mean())


def test_shared_documents_are_left_to_all_texts_that_want_them() -> None:
    every = world(400, 10)
    known, others = rest(every, 300)
    for seed in range(3):
        decision = decide(others, known, seed=seed)
        assert decision.choice.kind == "relations" and decision.choice.capacity == ANY
        assert decision.choice.leads["one-to-one"][2] < 0 < decision.choice.leads["relations"][1]
        # a document wanted by seven of ten texts also belongs to the three that prefer a rival
        own = np.arange(300, 400) // 10
        alone = firsts_right(decide(others, known, "none"), others, own)
        assert alone < 0.8 and firsts_right(decision, others, own) > alone + 0.1
        assert decision.held.mean() == pytest.approx(decision.right.mean(), abs=0.03)


def test_few_shared_documents_leave_every_text_alone() -> None:
    known, others = rest(world(140, 10), 90)  # too few to train trees
    decision = decide(others, known)
    assert decision.choice.kind == "none" and set(decision.choice.leads) == {"soft", "one-to-one"}


def test_without_links_nothing_competes_unless_it_is_asked_for() -> None:
    every = world(50, 1)
    lists = every.lists
    alone, asked = decide(lists, None), decide(lists, None, "one-to-one")
    assert (alone.choice.kind, asked.choice.kind) == ("none", "one-to-one")
    np.testing.assert_allclose(alone.links, softmax(lists.scores) * 0.9)
    assert (alone.none == lists.none).all()
    few, others = rest(every, 20)  # too few to learn from, but their documents are taken
    assert decide(others, few).choice.kind == "none"
    taken = decide(others, few, "one-to-one")
    assert (taken.links[np.isin(others.documents, few.links[:, 1])] == 0).all()


def test_a_choice_needs_a_sure_lead() -> None:
    none = np.full(100, 0.5)
    better, unsure = none + 0.1, none + RNG.normal(0.01, 1, 100)
    assert choose({"none": none, "soft": unsure, "one-to-one": none}, ONE).kind == "none"
    assert choose(
        {"none": none, "soft": better, "one-to-one": unsure}, Capacity(0.9, 0.1)
    ).capacity == Capacity(0.9, 0.1)
    assert choose({"none": none, "soft": better, "one-to-one": better + 0.1}, ONE).kind == "one-to-one"


def test_held_out_texts_do_not_hold_their_own_document() -> None:
    known = world(60, 1)
    links, none = held_out(known, NOBODY, "one-to-one")
    assert (links[known.relevant] > 0).all()
    # for most of them, a text in another fold has taken the rival's document
    assert (links[~known.relevant] == 0).mean() > 0.7
    np.testing.assert_allclose(links.sum(axis=1) + none, 1)
