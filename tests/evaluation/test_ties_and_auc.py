"""Bounds over every order of ties, by trying every order; AUC by counting pairs; tie counts; undefined topics."""

import itertools
import math
import random
from collections.abc import Iterator

import pytest

from linker.base.errors import InputError
from linker.evaluation import evaluate
from tests.evaluation.oracle import ALL, random_case, relevances, topic_values

BOUNDED = [m for m in ALL if not m.startswith("num")]


def orders(docs: dict[str, float]) -> Iterator[list[str]]:
    """Yield every ranking that the scores allow."""
    levels = [[d for d in docs if docs[d] == s] for s in sorted(set(docs.values()), reverse=True)]
    for parts in itertools.product(*(itertools.permutations(level) for level in levels)):
        yield [d for part in parts for d in part]


@pytest.mark.parametrize("seed", range(60))
def test_bounds_are_the_extremes_of_all_orders(seed: int) -> None:
    rng = random.Random(seed)
    docs = {f"d{i}": float(rng.randint(0, 2)) for i in range(6)}
    judged = {d: rng.choice((0, 1, 2, -1)) for d in rng.sample(sorted(docs), 4)} | {"lost": 1}
    judged_only, most = rng.choice(((False, None), (True, None), (False, 3)))
    e = evaluate(
        {"q": judged}, {"q": docs}, [*BOUNDED, "unj.1,2,5"], judged_only=judged_only, most=most, ties=True
    )
    values = []
    for order in orders(docs):
        strict = {d: float(-i) for i, d in enumerate(order)}
        rels = relevances(judged, strict, "trec_eval-9", judged_only, most)
        unjudged = {f"unj_{k}": sum(r < 0 for r in rels[:k]) / k for k in (1, 2, 5)}
        values.append(topic_values(judged, rels) | unjudged)
    for name, (low, high) in e.bounds.items():
        every = [v[name] for v in values]
        if name == "gm_map":
            every = [math.exp(v) for v in every]
        assert (low, high) == pytest.approx((min(every), max(every)), abs=1e-12), name


def test_ties_are_counted_as_the_version_sees_them() -> None:
    qrels = {"q": {"a": 1}, "r": {"a": 1}, "s": {"a": 1}}
    run = {"q": {"a": 1.0, "b": 1.0, "c": 0.5, "d": 0.5, "e": 0.1}, "r": {"a": 1.0, "b": 1 + 2**-30}}
    run["x"] = {"a": 0.0, "b": 0.0}  # not judged
    assert evaluate(qrels, run, "map", ties=True).tied == (6, 2)
    assert evaluate(qrels, run, "map", ties=True, compat="trec_eval-10").tied == (4, 1)
    text = evaluate(qrels, run, "recip_rank", ties=True).text()
    assert "recip_rank_low        \tall\t0.3333\n" in text and "tied_documents        \tall\t6\n" in text


def test_bounds_refuse_what_they_cannot_promise() -> None:
    with pytest.raises(InputError, match="-J and -M"):
        evaluate({"q": {"a": 1}}, {"q": {"a": 1}}, "map", judged_only=True, most=1, ties=True)


def pair_auc(positives: list[float], negatives: list[float]) -> float:
    if not positives or not negatives:
        return math.nan
    wins = [1.0 if p > n else 0.5 if p == n else 0.0 for p in positives for n in negatives]
    return sum(wins) / len(wins)


LOST = -1e308  # below every score: judged but not retrieved


@pytest.mark.parametrize("seed", range(60))
def test_auc_counts_pairs(seed: int) -> None:
    rng = random.Random(seed)
    qrels, _ = random_case(rng)
    docs = ["d1", "9", "10", "é", "zz", "u", "v"]
    run = {t: {d: float(rng.randint(-2, 2)) for d in rng.sample(docs, 5)} for t in qrels}
    if len(run) > 1:
        del run[min(run)]
    level = rng.choice((1, 2))
    e = evaluate(qrels, run, ["auc", "auc_judged", "auc_micro", "auc_judged_micro"], level=level)
    for name in ("auc", "auc_judged"):
        pool: tuple[list[float], list[float]] = ([], [])
        defined = []
        for topic, judged in qrels.items():
            positives, negatives = [], []
            if topic in run:
                known = {d: r for d, r in judged.items() if r >= 0}
                members = set(known) | (set(run[topic]) if name == "auc" else set())
                positives = [run[topic].get(d, LOST) for d in members if known.get(d, -1) >= level]
                negatives = [run[topic].get(d, LOST) for d in members if known.get(d, -1) < level]
            pool[0].extend(positives)
            pool[1].extend(negatives)
            expected = pair_auc(positives, negatives)
            assert e.topic(topic)[name] == pytest.approx(expected, nan_ok=True)
            defined += [expected] if not math.isnan(expected) else []
        assert e.undefined[name] == len(qrels) - len(defined)
        assert e[name] == pytest.approx(sum(defined) / len(defined) if defined else math.nan, nan_ok=True)
        assert e[f"{name}_micro"] == pytest.approx(pair_auc(*pool), nan_ok=True)


def test_undefined_auc_is_nan_and_null_in_json() -> None:
    e = evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, ["auc", "auc_micro"])
    assert math.isnan(e["auc"]) and math.isnan(e["auc_micro"])
    assert e.to_dict()["measures"] == {"auc": None, "auc_micro": None}
    assert "auc_undefined         \tall\t1\n" in e.text()
