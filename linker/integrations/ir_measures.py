"""ir_measures: linker as a provider of its measures (extra `ir`).

`from linker.integrations.ir_measures import provider`, then `provider.calc_aggregate([nDCG @ 10], qrels, run)`. It is
also in `ir_measures.providers.registry`, as "linker".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from indexes.errors import importing
from linker.evaluation import Entries, evaluate
from linker.evaluation.formats import load_qrels, load_run

with importing("ir_measures", "ir"):
    import ir_measures
    from ir_measures import Metric, measures
    from ir_measures.providers import Evaluator, Provider, register
    from ir_measures.providers.base import NOT_PROVIDED, Choices
    from ir_measures.providers.base import Any as Anything

# ir_measures' names → our names, to which a cutoff, a recall level or p is appended.
NAMES = {
    "P": "P", "RR": "recip_rank", "Rprec": "Rprec", "AP": "map", "nDCG": "ndcg", "R": "recall", "Bpref": "bpref",
    "NumQ": "num_q", "NumRel": "num_rel", "SetP": "set_P", "SetR": "set_recall", "SetF": "set_F", "infAP": "infAP",
    "Success": "success", "IPrec": "iprec_at_recall", "Judged": "judged", "ERR": "err", "RBP": "rbp",
}  # fmt: skip
Group = tuple[int, bool]  # relevance level, judged documents only


class LinkerProvider(Provider):  # type: ignore[misc] # ir_measures' classes are untyped
    """Computes the measures of ir_measures with `linker.evaluate`: trec_eval's numbers, faster."""

    NAME = "linker"
    SUPPORTED_MEASURES = [  # noqa: RUF012 - the name and form that the base class asks for
        measures._P(cutoff=Anything(required=True), rel=Anything(), judged_only=Anything()),
        measures._RR(cutoff=Anything(), rel=Anything(), judged_only=Anything()),
        measures._Rprec(rel=Anything(), judged_only=Anything()),
        measures._AP(cutoff=Anything(), rel=Anything(), judged_only=Anything()),
        measures._nDCG(
            cutoff=Anything(), dcg=Choices("log2"), gains=Choices(NOT_PROVIDED), judged_only=Anything()
        ),
        measures._R(cutoff=Anything(required=True), rel=Anything(), judged_only=Anything()),
        measures._Bpref(rel=Anything()),
        measures._NumRet(rel=Anything()),
        measures._NumQ(),
        measures._NumRel(rel=Anything()),
        measures._SetP(rel=Anything(), relative=Choices(False), judged_only=Anything()),
        measures._SetR(rel=Anything()),
        measures._SetF(rel=Anything(), beta=Choices(1.0), judged_only=Anything()),
        measures._Success(cutoff=Anything(required=True), rel=Anything(), judged_only=Anything()),
        measures._IPrec(recall=Anything(), rel=Anything(), judged_only=Anything()),
        measures._infAP(rel=Anything()),
        measures._Judged(cutoff=Anything(required=True)),
        measures._ERR(cutoff=Anything(required=True)),
        measures._RBP(cutoff=Choices(NOT_PROVIDED), p=Anything(), rel=Anything(required=True)),
    ]

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> LinkerEvaluator:
        return LinkerEvaluator(measures, qrels)


class LinkerEvaluator(Evaluator):  # type: ignore[misc] # ir_measures' classes are untyped
    """Evaluates any number of runs with judgements that are read only once."""

    def __init__(self, measures: Iterable[Any], qrels: Any) -> None:
        """`qrels` is anything that ir_measures accepts: rows, a mapping, or a data frame."""
        judged = ir_measures.util.QrelsConverter(qrels).as_dict_of_dict()
        super().__init__(list(measures), set(judged))
        self._qrels: Entries[int] = load_qrels(judged)
        self._groups: dict[Group, list[tuple[Any, str]]] = {}
        for measure in self.measures:
            group, name = _translate(measure)
            self._groups.setdefault(group, []).append((measure, name))

    def _iter_calc(self, run: Any) -> Iterator[Any]:
        ranked = {topic: d for topic, d in ir_measures.util.RunConverter(run).as_dict_of_dict().items() if d}
        if not ranked.keys() & self.qrel_qids:
            return
        answers = load_run(ranked)
        for (level, judged_only), wanted in self._groups.items():
            names = [name for _, name in wanted]
            result = evaluate(self._qrels, answers, names, level=level, judged_only=judged_only)
            columns = {name: result.per_topic[str(_parse(name))].tolist() for name in names}
            for at, topic in enumerate(result.topic_ids):
                if result.answered[at]:
                    for measure, name in wanted:
                        yield Metric(query_id=topic, measure=measure, value=columns[name][at])


def _parse(name: str) -> Any:
    from linker.evaluation.names import parse

    return parse([name])[0]


def _translate(measure: Any) -> tuple[Group, str]:
    """Return a measure's relevance level, whether only judged documents count, and our name for it."""

    def given(name: str) -> Any:
        value = measure[name] if name in measure.SUPPORTED_PARAMS else NOT_PROVIDED
        return None if value is NOT_PROVIDED else value

    level = given("rel")
    group = (1 if level is None else level, bool(given("judged_only")))
    if measure.NAME == "NumRet":
        return group, "num_ret" if level is None else "num_rel_ret"
    number = next((n for n in map(given, ("recall", "p", "cutoff")) if n is not None), None)
    return group, NAMES[measure.NAME] + ("" if number is None else f".{number}")


provider = register(LinkerProvider())
