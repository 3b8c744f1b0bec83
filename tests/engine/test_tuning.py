import json
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.fusion import Fusion, Ranking
from indexes.text.parameters import Bm25Parameters, Field
from linker.base.errors import InputError
from linker.engine.tuning import Lead, Tuning, fusions, tune
from linker.engine.tuning.choice import FOLDS, choose
from linker.engine.tuning.parameters import Bm25Search, best_parameters
from linker.engine.tuning.settings import Setting, Trials
from linker.evaluation.significance import fold_numbers


def ranking(lists: Sequence[Sequence[int]]) -> Ranking:
    """Rows with the scores 1, 1/2, 1/3, … by rank."""
    width = max(map(len, lists))
    rows = np.full((len(lists), width), -1, dtype=np.int64)
    scores = np.full((len(lists), width), -np.inf, dtype=np.float32)
    for q, answer in enumerate(lists):
        rows[q, : len(answer)] = answer
        scores[q, : len(answer)] = [1 / rank for rank in range(1, len(answer) + 1)]
    return rows, scores


QUERIES = 40
NOISE = [[100 + 10 * q + i for i in range(5)] for q in range(QUERIES)]  # irrelevant rows
WANTED = [[q] for q in range(QUERIES)]


def at_rank(q: int, rank: int, noise: int = 0) -> list[int]:
    """Return five hits with the relevant row at `rank` (0: absent)."""
    answer = [row + 1000 * noise for row in NOISE[q]]
    if rank:
        answer[rank - 1] = q
    return answer


def means(result: Tuning, mode: str) -> list[float]:
    return [c.means[result.measure] for c in result.candidates if c.mode == mode]


DEFAULT = ("hybrid", Fusion())


def chosen(result: Tuning) -> tuple[str, Fusion | None]:
    return result.chosen.mode, result.chosen.fusion


def test_a_weak_dense_side_is_left_out() -> None:
    # Ten relevant rows are second for BM25. The default hybrid puts dense noise in between: third.
    bm25 = ranking([at_rank(q, 1 if q % 4 else 2) for q in range(QUERIES)])
    dense = ranking([at_rank(q, 0, noise=1) for q in range(QUERIES)])
    result = tune(bm25, dense, WANTED)
    assert chosen(result) == ("bm25", None)
    assert means(result, "bm25") == [(30 * 1 + 10 / 2) / 40]
    assert means(result, "dense") == [0]
    assert result.default.means["mrr"] == pytest.approx((30 * 1 + 10 / 3) / 40)
    assert result.lead.mean == pytest.approx(10 / 40 * (1 / 2 - 1 / 3))
    assert result.costs["hybrid zscore 0.6:0.4"] == result.lead
    assert result.costs["dense alone"].mean == pytest.approx(35 / 40)
    assert result.queries == QUERIES and len(result.candidates) == 2 + len(fusions())


def test_sides_that_complete_each_other_become_a_hybrid() -> None:
    # Both have every relevant row at rank 2, below noise that the other retriever does not share.
    bm25 = ranking([at_rank(q, 2) for q in range(QUERIES)])
    dense = ranking([at_rank(q, 2, noise=1) for q in range(QUERIES)])
    result = tune(bm25, dense, WANTED)
    # 1/62 + 1/62 > 1/61: the plainest hybrid already has it first, and ties go to the plainest.
    assert chosen(result) == ("hybrid", Fusion("rrf", (0.5, 0.5), 60))
    assert result.chosen.means == {"mrr": 1, "success@1": 1, "success@5": 1, "map": 1}
    assert means(result, "bm25") == means(result, "dense") == [1 / 2]
    assert "hybrid rrf 0.5:0.5 k=60 leads the default" in result.reason


def test_the_better_weight_is_found() -> None:
    # Even queries: dense has the relevant row first, BM25 only noise; at equal weights both firsts have 1/61 and the
    # lower row, noise, wins. Odd queries: dense has it second, and BM25's first rank lifts it.
    bm25, dense, wanted = [], [], [10_000 + q for q in range(QUERIES)]
    for q, row in enumerate(wanted):
        own, other = at_rank(q, 0), at_rank(q, 0, noise=1)
        bm25.append([row, *own[1:]] if q % 2 else own)
        dense.append([other[0], row] if q % 2 else [row, *other[1:]])
    result = tune(ranking(bm25), ranking(dense), [[row] for row in wanted])
    assert chosen(result) == ("hybrid", Fusion("rrf", (0.4, 0.6), 60))
    assert result.chosen.means["mrr"] == 1


def test_a_cosine_that_is_low_leaves_the_query_to_bm25() -> None:
    # Even queries: a close neighbour (cosine .9) is right. Odd queries: the nearest has .1, and BM25 is right. Only a
    # fusion that keeps the cosine's size gets both.
    wanted = [20_000 + q for q in range(QUERIES)]  # behind the noise if scores tie
    bm25 = ranking([[row, 100] if q % 2 else [100, 101] for q, row in enumerate(wanted)])
    rows = np.array([[9_000 if q % 2 else row] for q, row in enumerate(wanted)])
    scores = np.array([[0.1 if q % 2 else 0.9] for q in range(QUERIES)], dtype=np.float32)
    result = tune(bm25, (rows, scores), [[row] for row in wanted])
    assert chosen(result) == ("hybrid", Fusion("cosine", (1.0, 1.5)))
    assert result.chosen.means["mrr"] == 1
    assert max(c.means["mrr"] for c in result.candidates if c.fusion and c.fusion.method != "cosine") < 1


def test_equal_sides_keep_the_default() -> None:
    side = ranking([at_rank(q, 1 + q % 3) for q in range(QUERIES)])
    result = tune(side, side, WANTED)
    assert chosen(result) == DEFAULT
    assert "is kept" in result.reason and result.lead == Lead(0.0, 0.0)


def helped(queries: Sequence[int]) -> Tuning:
    """Tune with every relevant row first under the default hybrid except for `queries`, which other hybrids get."""
    bm25 = ranking([at_rank(q, 2 if q in queries else 1) for q in range(QUERIES)])
    dense = ranking([at_rank(q, 2 if q in queries else 1, noise=1) for q in range(QUERIES)])
    return tune(bm25, dense, WANTED)


def test_a_query_does_not_judge_what_it_helped_to_choose() -> None:
    # One query gains: without it the hybrids are equal, so out of its fold the default stays, and nothing is gained.
    alone = helped([0])
    assert max(means(alone, "hybrid")) == 1 > alone.default.means["mrr"]
    assert chosen(alone) == DEFAULT and alone.lead == Lead(0.0, 0.0)
    # Two in different folds confirm each other; two in one fold do not.
    folds = fold_numbers(QUERIES, FOLDS, 0).tolist()
    twin = next(q for q in range(1, QUERIES) if folds[q] == folds[0])
    other = next(q for q in range(1, QUERIES) if folds[q] != folds[0])
    assert chosen(helped([0, twin])) == DEFAULT
    both = helped([0, other])
    assert both.chosen.mode == "hybrid" and both.chosen.means["mrr"] == 1
    gain = 1 - 1 / 3  # the default has them third, below the top hit of each side
    assert both.lead.mean == pytest.approx(2 * gain / QUERIES)
    spread = math.sqrt((2 * (gain - 2 * gain / 40) ** 2 + 38 * (2 * gain / 40) ** 2) / 39)
    assert both.lead.error == pytest.approx(spread / math.sqrt(40))
    assert both.costs["hybrid zscore 0.6:0.4"] == both.lead


def test_folds_are_equal_and_dealt_by_the_seed() -> None:
    assert sorted(np.bincount(fold_numbers(43, FOLDS, 5)).tolist()) == [4] * 7 + [5] * 3
    assert (
        fold_numbers(43, FOLDS, 5).tolist()
        == fold_numbers(43, FOLDS, 5).tolist()
        != fold_numbers(43, FOLDS, 6).tolist()
    )


def test_one_query_never_displaces_the_default() -> None:
    result = tune(ranking([at_rank(0, 2)]), ranking([at_rank(0, 2, noise=1)]), WANTED[:1])
    assert max(means(result, "hybrid")) == 1
    assert chosen(result) == DEFAULT
    assert result.lead.to_json() == {"mean": 0, "error": None, "low": None, "high": None}
    json.dumps(result.to_json(), allow_nan=False)


def test_a_lead_is_a_mean_with_its_standard_error() -> None:
    lead = Lead.of(np.array([1.0, 0, 0, 0]), np.zeros(4))
    assert (lead.mean, lead.error) == (0.25, 0.25)
    assert lead.to_json() == {"mean": 0.25, "error": 0.25, "low": -0.25, "high": 0.75}
    assert str(lead) == "0.2500 (-0.2500 to 0.7500)"
    assert lead.exceeds(0.99) and not lead.exceeds(1)
    assert not Lead(0.0, 0.0).exceeds(0) and Lead(0.1, 0.0).exceeds(2)


class Given(Trials):
    """Settings with given values."""

    def __init__(self, table: dict[Setting, list[float]]) -> None:
        self.table = table

    def values(self, setting: Setting) -> npt.NDArray[np.float64]:
        return np.array(self.table[setting])


HYBRIDS = [Setting("hybrid", Fusion(weights=(1.0, w))) for w in (1.0, 2.0, 3.0)]
SINGLES = [Setting("bm25"), Setting("dense")]


def oracle_choice(table: dict[Setting, list[float]], folds: list[int]) -> Setting:
    """The rule in plain Python: out-of-fold values of the best hybrid and the better retriever, then the thresholds."""

    def best(group: list[Setting], queries: list[int]) -> Setting:
        sums = [round(sum(table[s][q] for q in queries) / len(queries), 9) if queries else 0 for s in group]
        return group[sums.index(max(sums))]

    def out_of_fold(group: list[Setting]) -> list[float]:
        others = [[p for p in range(len(folds)) if folds[p] != fold] for fold in folds]
        return [table[best(group, others[q])][q] for q in range(len(folds))]

    def lead(a: list[float], b: list[float]) -> tuple[float, float]:
        d = [x - y for x, y in zip(a, b, strict=True)]
        mean = sum(d) / len(d)
        return mean, math.sqrt(sum((x - mean) ** 2 for x in d) / (len(d) - 1) / len(d))

    default, tuned, single = table[HYBRIDS[0]], out_of_fold(HYBRIDS), out_of_fold(SINGLES)
    everything = list(range(len(folds)))
    mean, error = lead(single, default)
    if mean > max(2 * error, 1e-9) and lead(tuned, single)[0] < 1e-9:
        return best(SINGLES, everything)
    mean, error = lead(tuned, default)
    return best(HYBRIDS, everything) if mean > max(error, 1e-9) else HYBRIDS[0]


@settings(max_examples=300, deadline=None)
@given(st.integers(2, 40), st.integers(0, 1000), st.sampled_from([0.0, 0.3, 0.6]))
def test_the_choice_equals_the_rule(queries: int, seed: int, shift: float) -> None:
    rng = np.random.default_rng(seed)
    boosted = int(rng.integers(0, 5))
    table = {
        setting: (rng.random(queries) + shift * (number == boosted)).tolist()
        for number, setting in enumerate([*HYBRIDS, *SINGLES])
    }
    folds = fold_numbers(queries, FOLDS, seed)
    choice = choose(Given(table), HYBRIDS, SINGLES, folds)
    assert choice.setting == oracle_choice(table, folds.tolist())


def test_a_single_retriever_has_to_lead_by_two_standard_errors() -> None:
    # On n of 40 queries, BM25 is right and the default wrong: lead n/40, error sqrt(n/40 (1 − n/40) / 39).
    def table(n: int) -> dict[Setting, list[float]]:
        wins = [1.0] * n + [0.0] * (40 - n)
        return {**{h: [0.0] * 40 for h in HYBRIDS}, SINGLES[0]: wins, SINGLES[1]: [0.0] * 40}

    folds = fold_numbers(40, FOLDS, 0)
    assert choose(Given(table(3)), HYBRIDS, SINGLES, folds).setting == HYBRIDS[0]  # 1.78 errors
    assert choose(Given(table(5)), HYBRIDS, SINGLES, folds).setting == SINGLES[0]  # 2.36
    ahead = {**table(5), HYBRIDS[1]: [1.0] * 6 + [0.0] * 34}  # a hybrid that beats it takes precedence
    assert choose(Given(ahead), HYBRIDS, SINGLES, folds).setting == HYBRIDS[1]
    # in a tie, the setting that queries only one retriever
    level = {**table(5), HYBRIDS[1]: [1.0] * 5 + [0.0] * 35}
    assert choose(Given(level), HYBRIDS, SINGLES, folds).setting == SINGLES[0]


@pytest.mark.parametrize(("hard", "warned"), [(19, True), (20, False)])
def test_a_saturated_set_is_named(hard: int, warned: bool) -> None:
    # Every hybrid answers all but `hard` of 40 queries: only these distinguish the settings.
    result = helped(range(hard))
    assert result.deciding == hard
    assert bool(result.warnings) == warned
    if warned:
        assert "hardly tell settings apart: of 40, the default answers 19 imperfectly" in result.warnings[0]


def test_a_set_on_which_settings_agree_is_named_however_hard() -> None:
    side = ranking([at_rank(q, 3) for q in range(QUERIES)])
    result = tune(side, side, WANTED)
    assert result.deciding == 0
    assert "answers 40 imperfectly (mean 0.3333)" in result.warnings[0]


def test_the_measure_decides() -> None:
    # BM25: half first, half missing. Dense: always second.
    bm25 = ranking([at_rank(q, q % 2) for q in range(QUERIES)])
    dense = ranking([at_rank(q, 2) for q in range(QUERIES)])
    by = {m: tune(bm25, dense, WANTED, m) for m in ("success@1", "success@5")}
    assert means(by["success@1"], "bm25") == [0.5] and means(by["success@1"], "dense") == [0]
    assert means(by["success@5"], "bm25") == [0.5] and means(by["success@5"], "dense") == [1]
    assert {m: (t.measure, t.default.means[m]) for m, t in by.items()} == {
        "success@1": ("success@1", 0.5),
        "success@5": ("success@5", 1),
    }
    assert chosen(by["success@5"]) == DEFAULT  # no setting can beat it
    assert by["success@5"].costs["bm25 alone"].mean == 0.5 and by["success@5"].costs["dense alone"].mean == 0


def test_queries_without_relevant_rows_or_answers_count_zero() -> None:
    bm25 = ranking([[5], [6], []])
    result = tune(bm25, None, [[5], [], [7]])
    assert result.chosen.means["mrr"] == 1 / 3


@pytest.mark.parametrize("mode", ["bm25", "dense"])
def test_an_index_with_one_side(mode: str) -> None:
    side = ranking([[5, 6]])
    result = tune(side if mode == "bm25" else None, side if mode == "dense" else None, [[6]])
    assert [c.mode for c in result.candidates] == [mode] == [result.chosen.mode]
    assert result.chosen.fusion is None and result.chosen.means["mrr"] == 1 / 2
    assert result.reason == f"{mode} is the only retriever of the index"


def test_what_cannot_be_tuned_is_refused() -> None:
    side = ranking([[1], [2]])
    with pytest.raises(InputError, match="unknown measure 'ndcg': choose one of mrr"):
        tune(side, side, [[1], [2]], "ndcg")
    with pytest.raises(InputError, match="neither"):
        tune(None, None, [[1], [2]])
    with pytest.raises(InputError, match="no query has a relevant document"):
        tune(side, side, [[], []])
    with pytest.raises(InputError, match="expected 3 BM25 rankings, one per query, got 2"):
        tune(side, side, [[1], [2], [3]])


def searcher(wins: dict[str, float], calls: list[Bm25Parameters]) -> Bm25Search:
    """BM25 has the relevant row first on every second query, and always if its parameters are `wins`."""

    def search(parameters: Bm25Parameters) -> Ranking:
        calls.append(parameters)
        right = all(getattr(parameters, name) == value for name, value in wins.items())
        return ranking([at_rank(q, 1 if right or q % 2 else 3) for q in range(QUERIES)])

    return Bm25Search(search, Bm25Parameters())


def test_parameters_of_bm25_are_chosen_one_after_the_other() -> None:
    calls: list[Bm25Parameters] = []
    found = searcher({"k1": 2.0}, calls)
    result = tune(found.search(found.current), None, WANTED, parameters=found)
    assert (result.chosen.mode, result.chosen.bm25) == ("bm25", Bm25Parameters(k1=2.0))
    assert result.chosen.means["mrr"] == 1
    assert result.lead.mean == pytest.approx(0.5 * (1 - 1 / 3))
    assert result.costs["bm25 alone"] == result.lead
    assert str(result.chosen) == "bm25 alone k1=2 b=0.75 k3=1"
    assert len(calls) == len(set(calls))  # each is searched once, however many folds need it
    assert result.chosen.to_json()["bm25"] == {"k1": 2.0, "b": 0.75, "k3": 1.0}


def test_parameters_that_bring_nothing_stay() -> None:
    found = searcher({"k1": 9.0}, [])
    result = tune(found.search(found.current), None, WANTED, parameters=found)
    assert result.chosen == result.default and result.chosen.bm25 is None
    assert result.reason.endswith(
        "only retriever of the index, and no other parameters of BM25 lead out of fold"
    )


@pytest.mark.parametrize("weight", [4.0, 0.0])
def test_weights_of_fields_are_chosen_after_the_parameters(weight: float) -> None:
    title, text = Field("title", 1.0, 0.5), Field("k1", 1.0)  # a field may have a parameter's name
    tried: list[Bm25Parameters] = []

    def search(parameters: Bm25Parameters) -> Ranking:
        tried.append(parameters)
        right = parameters.k1 == 2.0 and parameters.fields and parameters.fields[0].weight == weight
        return ranking(
            [at_rank(q, 1 if right or q % 2 else 3 - (parameters.k1 == 2.0)) for q in range(QUERIES)]
        )

    found = Bm25Search(search, Bm25Parameters(fields=(title, text)))
    result = tune(found.search(found.current), None, WANTED, parameters=found)
    assert result.chosen.bm25 == Bm25Parameters(2.0, fields=(Field("title", weight, 0.5), text))
    assert str(result.chosen) == f"bm25 alone k1=2 b=0.75 k3=1 title={weight:g} k1=1"
    assert all(any(field.weight for field in p.fields) for p in tried)
    tried.clear()
    one = Bm25Search(search, Bm25Parameters(fields=(title,)))
    tune(one.search(one.current), None, WANTED, parameters=one)
    assert {p.fields for p in tried} == {(title,)}  # the weight of a single field is redundant with k1


def test_a_hybrid_takes_the_chosen_parameters() -> None:
    found = searcher({"b": 0.3}, [])
    dense = ranking([at_rank(q, 2, noise=1) for q in range(QUERIES)])
    result = tune(found.search(found.current), dense, WANTED, parameters=found)
    assert result.chosen.bm25 == Bm25Parameters(b=0.3)
    assert result.chosen.means["mrr"] == 1 > result.default.means["mrr"]
    assert result.default.bm25 is None


def test_a_grid_is_walked_along_one_parameter_at_a_time() -> None:
    # k3 = 0 helps only with k1 = .9, which is chosen first; with another k1 nothing would help.
    table = {
        Bm25Parameters(k1=0.9): [1.0, 1, 0, 0],
        Bm25Parameters(k1=0.9, k3=0.0): [1.0, 1, 1, 0],
        Bm25Parameters(k3=0.0): [1.0, 1, 1, 1],
    }

    class Parameterised(Trials):
        def __init__(self) -> None:
            pass

        def values(self, setting: Setting) -> npt.NDArray[np.float64]:
            return np.array(table.get(setting.bm25 or Bm25Parameters(), [1.0, 0, 0, 0]))

    found = Bm25Search(lambda p: ranking([[0]]), Bm25Parameters())
    everything = np.ones(4, dtype=bool)
    assert best_parameters(Parameterised(), found, everything) == Bm25Parameters(k1=0.9, k3=0.0)
    assert best_parameters(Parameterised(), found, np.array([True, False, False, False])) is None
