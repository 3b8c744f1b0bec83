"""The choice of `linker index tune`: which setting, by how much it leads the untuned default, and how sure that is.

The untuned default is what a choice has to beat: hybrid search with the fusion that was chosen on several corpora, or
the only retriever of an index that has one. What a choice brings is measured by cross-validation over the queries: in
each of ten folds the best setting of the other nine answers the fold's queries, so that no query judges a setting that
it helped to choose. Then

- the best hybrid replaces the default where its lead out of fold exceeds one standard error (`HYBRID_CERTAINTY`). On
  30 judged queries, the setting that is best on all of them loses .003 to .010 of mean reciprocal rank on others, and
  this rule .001 to .002; from 200 on it gains (benchmarks/results/tuning.json);
- one retriever alone replaces it only where its lead exceeds two (`SINGLE_CERTAINTY`) and no hybrid is ahead of it: a
  few judged queries seldom show what the other retriever finds for the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from indexes.dtypes import Float64Array, Int64Array
from indexes.fusion import Ranking
from linker.errors import InputError
from linker.tuning.measures import MEASURES
from linker.tuning.settings import SearchSetting, Setting, candidates
from linker.tuning.trials import Trials

FOLDS = 10
HYBRID_CERTAINTY = 1.0  # standard errors
SINGLE_CERTAINTY = 2.0
INTERVAL = 2.0  # standard errors on either side
FEW = 20  # queries on which two settings differ: of fewer, a sign test cannot tell three won in four from chance


@dataclass(frozen=True, slots=True)
class Lead:
    """The mean of paired differences between two settings, and its standard error (infinite for a single query)."""

    mean: float
    error: float

    @classmethod
    def of(cls, ahead: Float64Array, behind: Float64Array) -> Lead:
        """Return the lead of the values `ahead` over `behind`, both [Q], of the same queries."""
        difference = ahead - behind
        if len(difference) < 2:
            return cls(float(difference.mean()), math.inf)
        return cls(float(difference.mean()), float(difference.std(ddof=1) / math.sqrt(len(difference))))

    def exceeds(self, errors: float) -> bool:
        """Return whether the lead is positive and more than so many standard errors."""
        return round(self.mean, 12) > 0 and self.mean > errors * self.error

    def __str__(self) -> str:
        if math.isinf(self.error):
            return f"{self.mean:.4f}"
        width = INTERVAL * self.error
        return f"{self.mean:.4f} ({self.mean - width:.4f} to {self.mean + width:.4f})"

    def to_json(self) -> dict[str, float | None]:
        """Return mean, standard error and interval (mean ∓ two standard errors); None where there is no error."""
        if math.isinf(self.error):
            return {"mean": self.mean, "error": None, "low": None, "high": None}
        width = INTERVAL * self.error
        return {
            "mean": self.mean, "error": self.error, "low": self.mean - width, "high": self.mean + width,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tuning:
    """The chosen setting, all candidates, and why it was chosen (`reason` is a sentence for the user).

    `lead`: of the best alternative over the default, out of fold; of the chosen setting, unless that is the default.
    `costs`: by setting, what it costs to search so instead of as chosen, out of fold. `deciding`: on how many queries
    the default and the best other setting differ. `warnings`: why the queries may not be enough to choose on.
    """

    chosen: SearchSetting
    default: SearchSetting
    candidates: tuple[SearchSetting, ...]
    measure: str
    queries: int
    reason: str
    lead: Lead
    costs: Mapping[str, Lead]
    deciding: int
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the tuning as values for JSON."""
        return {
            "chosen": self.chosen.to_json(),
            "default": self.default.to_json(),
            "reason": self.reason,
            "measure": self.measure,
            "queries": self.queries,
            "lead": self.lead.to_json(),
            "costs": {name: cost.to_json() for name, cost in self.costs.items()},
            "deciding": self.deciding,
            "warnings": list(self.warnings),
            "candidates": [c.to_json() for c in self.candidates],
        }


def tune(
    bm25: Ranking | None,
    dense: Ranking | None,
    relevant: Sequence[Sequence[int]],
    measure: str = "mrr",
    *,
    seed: int = 0,
) -> Tuning:
    """Choose the search setting for `measure` on the judged queries, by the rules at the top of this module.

    `bm25` and `dense` are the rankings [Q, depth] of the same Q queries, None where the index lacks the retriever;
    fusion weights are in that order. `relevant` holds each query's relevant rows; −1 stands for a relevant document
    that is not in the index: it is counted, never found. Every query counts; one without relevant rows scores 0.
    `seed` deals the queries to the folds. Ties go to the default, then to the plainer hybrid. Raises InputError where
    the measure is unknown, or there is no retriever or no relevant document to choose by.
    """
    _check(bm25, dense, relevant, measure)
    settings = candidates(bm25=bm25 is not None, dense=dense is not None)
    trials = Trials(bm25, dense, relevant, measure)
    hybrids = [s for s in settings if s.fusion] or settings[:1]
    choice = choose(trials, hybrids, [s for s in settings if not s.fusion], fold_numbers(len(relevant), seed))
    measured = {s: SearchSetting(s.mode, s.fusion, trials.means(s)) for s in settings}
    return Tuning(
        measured[choice.setting], measured[settings[0]], tuple(measured.values()), measure, len(relevant),
        choice.reason, choice.lead, choice.costs, *_saturation(trials, settings),
    )  # fmt: skip


def fold_numbers(queries: int, seed: int) -> Int64Array:
    """Return the fold of each query, int64 [queries]: `FOLDS` in random order, their sizes at most one apart."""
    return np.random.default_rng(seed).permutation(queries) % FOLDS


def _check(
    bm25: Ranking | None, dense: Ranking | None, relevant: Sequence[Sequence[int]], measure: str
) -> None:
    if measure not in MEASURES:
        raise InputError(f"unknown measure {measure!r}: choose one of {', '.join(MEASURES)}")
    if bm25 is None and dense is None:
        raise InputError("the index has neither a BM25 nor a dense retriever: there is nothing to tune")
    if not any(len(rows) for rows in relevant):
        raise InputError("no query has a relevant document: check that the qrels name these queries")
    for name, ranking in (("BM25", bm25), ("dense", dense)):
        if ranking is not None and len(ranking[0]) != len(relevant):
            raise InputError(f"{len(relevant)} judged queries but {len(ranking[0])} {name} answers")


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen setting, why, its lead over the default, and what other settings cost (see `Tuning`)."""

    setting: Setting
    reason: str
    lead: Lead
    costs: Mapping[str, Lead]


def choose(
    trials: Trials, hybrids: Sequence[Setting], singles: Sequence[Setting], folds: Int64Array
) -> Choice:
    """Return the choice by the rules at the top of this module; the first of `hybrids` is the default.

    `folds`, int64 [Q], is the fold of each query.
    """
    default = hybrids[0]
    values = trials.values(default)
    if len(hybrids) == 1:
        reason = f"{singles[0].mode} is the only retriever of the index"
        return Choice(default, reason, Lead.of(values, values), {})
    tuned, single = (_out_of_fold(trials, group, folds) for group in (hybrids, singles))
    everything = np.ones(len(values), dtype=bool)
    hybrid, alone = trials.best(hybrids, everything), trials.best(singles, everything)
    gain, gain_alone = Lead.of(tuned, values), Lead.of(single, values)
    if gain_alone.exceeds(SINGLE_CERTAINTY) and not Lead.of(tuned, single).exceeds(0):
        chosen, lead, out_of_fold = alone, gain_alone, single
    elif hybrid != default and gain.exceeds(HYBRID_CERTAINTY):
        chosen, lead, out_of_fold = hybrid, gain, tuned
    else:
        chosen, lead, out_of_fold = default, gain, values
    others = [default, *singles] if default != chosen else list(singles)
    costs = {str(s): Lead.of(out_of_fold, trials.values(s)) for s in others if s != chosen}
    return Choice(chosen, _reason(chosen, default, lead), lead, costs)


def _out_of_fold(trials: Trials, settings: Sequence[Setting], folds: Int64Array) -> Float64Array:
    """Return each query's value [Q] under the setting that is best on the other folds; the first where none is left."""
    out = np.empty(len(folds))
    for fold in np.unique(folds):
        inside = folds == fold
        best = trials.best(settings, ~inside) if not inside.all() else settings[0]
        out[inside] = trials.values(best)[inside]
    return out


def _reason(chosen: Setting, default: Setting, lead: Lead) -> str:
    if chosen != default:
        return (
            f"{chosen} leads the default ({default}) by {lead} out of fold: the default would cost that much"
        )
    if lead.mean > 0:
        return (
            f"the default ({default}) is kept: the best hybrid leads it by {lead} out of fold, which is not more "
            f"than {HYBRID_CERTAINTY:g} standard error"
        )
    return f"the default ({default}) is kept: choosing another hybrid changes {lead} out of fold"


def _saturation(trials: Trials, settings: Sequence[Setting]) -> tuple[int, tuple[str, ...]]:
    """Return on how many queries the default and the best other setting differ, and a warning if they are few."""
    if len(settings) == 1:
        return 0, ()
    default = trials.values(settings[0])
    other = trials.best(settings[1:], np.ones(len(default), dtype=bool))
    deciding = int(np.count_nonzero(trials.values(other) != default))
    imperfect = int(np.count_nonzero(default < 1))
    if min(deciding, imperfect) >= FEW:
        return deciding, ()
    return deciding, (
        f"these queries hardly tell settings apart: of {len(default)}, the default answers {imperfect} imperfectly "
        f"(mean {default.mean():.4f}), and the best other setting ({other}) differs from it on {deciding}: add "
        f"harder queries or more of them, for example the training links with another --qrels",
    )
