"""The choice of `linker index tune`: the setting, its lead over the untuned default, and the lead's uncertainty.

A choice has to beat the untuned default: hybrid search with the fusion chosen on several corpora, or an index's only
retriever. The gain of a choice is measured by cross-validation over the queries: in each of ten folds the best
setting of the other nine answers the fold's queries, so no query judges a setting that it helped to choose. Then

- the best hybrid setting replaces the default if its lead out of fold exceeds one standard error
  (`HYBRID_CERTAINTY`). With 30 judged queries, always taking the setting that is best on them loses .004 to .010 of
  mean reciprocal rank on other queries, and this rule loses .001 to .002; with 400 or more, the rule gains
  (benchmarks/results/tuning.json);
- k1, b and k3 of BM25 and the weights of its fields are chosen first, one after the other, by BM25's own ranking, if
  that gains one standard error out of fold; hybrid settings then use these parameters, and each fold chooses its own;
- a single retriever replaces the default only if its lead exceeds two standard errors (`SINGLE_CERTAINTY`) and no
  hybrid setting beats it: a few judged queries rarely show what the other retriever would find for other queries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from indexes.dtypes import BoolArray, Float64Array, Int64Array
from indexes.fusion import Ranking
from indexes.showing import SHOWN, table
from linker.base.errors import InputError
from linker.engine.tuning.measures import HYBRID_CERTAINTY, MEASURES, SINGLE_CERTAINTY, Lead
from linker.engine.tuning.parameters import Bm25Search, Parameters, choice_of_parameters
from linker.engine.tuning.settings import SearchSetting, Setting, Trials, candidates, with_parameters
from linker.evaluation.significance import fold_numbers

FOLDS = 10
# Minimum number of queries on which two settings differ: with fewer, a sign test cannot tell 3 wins in 4 from chance.
FEW = 20


@dataclass(frozen=True, slots=True)
class Tuning:
    """The chosen setting, all candidates, and why it was chosen (`reason` is a sentence for the user).

    `lead`: the lead, out of fold, of the chosen setting over the default or, if the default is chosen, of the best
    alternative. `costs`: setting → cost of searching with it instead of the choice, out of fold. `deciding`: number of
    queries on which the default and the best other setting differ. `warnings`: why there may be too few queries for a
    choice.
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

    def __repr__(self) -> str:
        value = self.chosen.means.get(self.measure)
        figure = "" if value is None else f", {self.measure} {value:.4f} on {self.queries} queries"
        return f"<Tuning: {self.chosen}{figure}; {self.reason}>"

    def _repr_html_(self) -> str:
        best = sorted(self.candidates, key=lambda c: -c.means[self.measure])[:SHOWN]
        rows = [
            (f"{c}{' (chosen)' * (c == self.chosen)}", *(f"{m:.4f}" for m in c.means.values())) for c in best
        ]
        return table(rows, ("setting", *self.chosen.means), "; ".join([self.reason, *self.warnings]))

    def to_json(self) -> dict[str, Any]:
        """Return the choice and its evidence as JSON-serialisable values."""
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
    parameters: Bm25Search | None = None,
) -> Tuning:
    """Choose the search setting for `measure` on the judged queries, by the rules at the top of this module.

    `bm25` and `dense` are the rankings [Q, depth] of the same Q queries, None if the index lacks the retriever;
    fusion weights are in that order. `relevant` has each query's relevant rows; −1 stands for a relevant document that
    is missing from the index: it is counted but never found. Every query counts; one without relevant rows scores 0.
    `seed` divides the queries into folds; with `parameters`, BM25's parameters are chosen, too. Ties go to the
    default, then to the simpler fusion. Raises InputError if the measure is unknown, or there is no retriever or no
    relevant document.
    """
    _check(bm25, dense, relevant, measure)
    settings = candidates(bm25=bm25 is not None, dense=dense is not None)
    tried_parameters = parameters if bm25 is not None else None
    search = tried_parameters.search if tried_parameters else None
    trials = Trials(bm25, dense, relevant, measure, search)
    folds = fold_numbers(len(relevant), FOLDS, seed)
    chosen_on = choice_of_parameters(trials, tried_parameters, folds)
    hybrids, singles = [s for s in settings if s.fusion], [s for s in settings if not s.fusion]
    choice = choose(trials, hybrids or singles, singles if hybrids else [], folds, chosen_on)
    tried = with_parameters(settings, chosen_on(np.ones(len(relevant), dtype=bool)))
    measured = {
        s: SearchSetting(s.mode, s.fusion, trials.means(s), s.bm25)
        for s in dict.fromkeys([*settings, *tried])
    }
    return Tuning(
        measured[choice.setting], measured[settings[0]], tuple(measured.values()), measure, len(relevant),
        choice.reason, choice.lead, choice.costs, *_saturation(trials, list(measured)),
    )  # fmt: skip


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
            raise InputError(
                f"expected {len(relevant)} {name} rankings, one per query, got {len(ranking[0])}"
            )


@dataclass(frozen=True, slots=True)
class TuningChoice:
    """The chosen setting, the reason, its lead over the default, and other settings' costs (see `Tuning`)."""

    setting: Setting
    reason: str
    lead: Lead
    costs: Mapping[str, Lead]


def choose(
    trials: Trials,
    hybrids: Sequence[Setting],
    singles: Sequence[Setting],
    folds: Int64Array,
    parameters: Parameters = lambda queries: None,
) -> TuningChoice:
    """Choose by the rules at the top of this module; the first of `hybrids` is the default.

    `folds`, int64 [Q], is the fold of each query; `parameters` chooses BM25's parameters on some of the queries. If
    the index has only one retriever, `hybrids` has that one as the default, and `singles` is empty.
    """
    default, everything = hybrids[0], np.ones(len(folds), dtype=bool)
    values = trials.values(default)
    if len(with_parameters(hybrids, parameters(everything))) == 1:
        reason = f"{default.mode} is the only retriever of the index"
        if trials.tries_parameters:
            reason += ", and no other parameters of BM25 lead out of fold"
        return TuningChoice(default, reason, Lead.of(values, values), {})
    tuned, best = _out_of_fold(trials, hybrids, folds, parameters)
    chosen, lead, out_of_fold = default, Lead.of(tuned, values), values
    if best != default and lead.exceeds(HYBRID_CERTAINTY):
        chosen, out_of_fold = best, tuned
    if singles:
        unfused, single = _out_of_fold(trials, singles, folds, parameters)
        gain = Lead.of(unfused, values)
        if gain.exceeds(SINGLE_CERTAINTY) and not Lead.of(tuned, unfused).exceeds(0):
            chosen, lead, out_of_fold = single, gain, unfused
    others = [default, *singles] if default != chosen else list(singles)
    costs = {str(s): Lead.of(out_of_fold, trials.values(s)) for s in others if s != chosen}
    return TuningChoice(chosen, _reason(chosen, default, lead), lead, costs)


def _out_of_fold(
    trials: Trials, settings: Sequence[Setting], folds: Int64Array, parameters: Parameters
) -> tuple[Float64Array, Setting]:
    """Return each query's value [Q] under the best setting of the other folds (or the first), and the best of all."""

    def best(queries: BoolArray) -> Setting:
        return trials.best(with_parameters(settings, parameters(queries)), queries)

    out = np.empty(len(folds))
    for fold in np.unique(folds):
        inside = folds == fold
        chosen = settings[0] if inside.all() else best(~inside)
        out[inside] = trials.values(chosen)[inside]
    return out, best(np.ones(len(folds), dtype=bool))


def _reason(chosen: Setting, default: Setting, lead: Lead) -> str:
    if chosen != default:
        return (
            f"{chosen} leads the default ({default}) by {lead} out of fold: the default would cost that much"
        )
    if lead.mean > 0:
        return (
            f"the default ({default}) is kept: the best other leads it by {lead} out of fold, which is not more "
            f"than {HYBRID_CERTAINTY:g} standard error"
        )
    return f"the default ({default}) is kept: choosing another setting gains {lead} out of fold"


def _saturation(trials: Trials, settings: Sequence[Setting]) -> tuple[int, tuple[str, ...]]:
    """Return how many queries distinguish the default from the best other setting, and a warning if few do."""
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
        f"harder queries or more of them, for example the training links with another `qrels`",
    )
