"""Parse measure names in trec_eval's spelling (`ndcg_cut_10`) or the modern one (`nDCG@10`)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from indexes.dtypes import Float64Array
from linker.base.errors import InputError
from linker.evaluation.measures import BY_NAME, DEFINITIONS, Definition
from linker.evaluation.ranking import Ranking

OFFICIAL = (
    "runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec", "bpref", "recip_rank",
    "iprec_at_recall", "P",
)  # fmt: skip
DEFAULT = ("num_q", "map", "recip_rank", "success")
TITLES = {
    "map": "MAP", "map_cut": "MAP", "gm_map": "GMAP", "Rprec": "R-Prec", "recip_rank": "MRR", "recip_rank_cut": "MRR",
    "iprec_at_recall": "iPrec", "recall": "Recall", "ndcg": "nDCG", "ndcg_cut": "nDCG", "success": "Success",
    "set_P": "Precision", "set_recall": "Recall", "set_F": "F1", "unj": "Unjudged", "auc": "AUC", "judged": "Judged",
    "rbp": "RBP", "err": "ERR",
}  # fmt: skip
FORMATS = {"rank": ".0f", "recall": ".2f", "persistence": "g"}
_SPELLED = {spelling: d for d in DEFINITIONS for spelling in (*d.aliases, d.name.lower())}
_NAME = re.compile(r"(?P<base>.+?)(?:[._@](?P<cuts>[0-9.]+(?:,[0-9.]+)*))?")
_PARAMETERS = re.compile(r"(?P<base>\w+)\((?P<name>\w+)=(?P<value>[^()]*)\)(?P<rest>.*)")  # as in RBP(p=0.8)


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure with its cutoff: `Measure("ndcg_cut", 10)` prints as `ndcg_cut_10`."""

    base: str
    cutoff: float | None = None

    def __str__(self) -> str:
        if self.cutoff is None:
            return self.base
        return f"{self.base}_{self.cutoff:{FORMATS[self.definition.unit]}}"

    @property
    def title(self) -> str:
        """The name as papers spell it: "nDCG@10"."""
        title = TITLES.get(self.base, self.base)
        if self.cutoff is None:
            return title
        if self.definition.unit == "persistence":
            return f"{title}(p={self.cutoff:g})"
        return f"{title}@{self.cutoff:g}"

    @property
    def definition(self) -> Definition:
        """The definition of the measure, apart from its cutoff."""
        return BY_NAME[self.base]

    def values(self, ranking: Ranking) -> Float64Array:
        """Return the value of every judged topic, float64 [topics]."""
        function = self.definition.function
        return function(ranking) if self.cutoff is None else function(ranking, self.cutoff)


def parse(names: Iterable[str] | str) -> list[Measure]:
    """Return the named measures (`map`, `P.5,10`, `success@1`, `nDCG@10`, `official`), in trec_eval's order, once each.

    Raises InputError if a name is unknown, there are no names, a measure takes no cutoff, or a cutoff is not a
    positive integer (for iprec and rbp: not between 0 and 1).
    """
    texts = names.split() if isinstance(names, str) else list(names)
    expanded = [n for text in texts for n in (OFFICIAL if text == "official" else (text,))]
    measures = {measure for text in expanded for measure in _read(text)}
    if not measures:
        raise InputError("no measure is named: name at least one")
    return sorted(measures, key=lambda m: (DEFINITIONS.index(m.definition), m.cutoff or 0))


def _read(text: str) -> list[Measure]:
    match = _NAME.fullmatch(_plain(text))
    definition = _SPELLED.get(match["base"].lower()) if match else None
    if match is None or definition is None:
        raise InputError(f"unknown measure {text!r}; known: official, {', '.join(BY_NAME)}")
    if match["cuts"] is None:
        return [Measure(definition.name, cutoff) for cutoff in definition.cutoffs or (None,)]
    definition = BY_NAME.get(definition.with_cutoff, definition)
    if definition.cutoffs is None:
        raise InputError(f"measure {definition.name!r} takes no cutoff: {text!r}")
    return [
        Measure(definition.name, _cutoff(definition, cutoff, text)) for cutoff in match["cuts"].split(",")
    ]


def _plain(text: str) -> str:
    """Return a name without ir_measures' parameters: "RBP.0.8" for "RBP(p=0.8)". Raises InputError for others."""
    match = _PARAMETERS.fullmatch(text)
    if match is None:
        return text
    definition = _SPELLED.get(match["base"].lower())
    if definition and definition.unit == "persistence" and match["name"] == "p" and not match["rest"]:
        return f"{match['base']}.{match['value']}"
    hint = ": give the relevance level with `level`" if match["name"] == "rel" else ""
    raise InputError(f"measure {text!r}: {match['base']} takes no parameter {match['name']!r}{hint}")


def _cutoff(definition: Definition, text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"cutoff {text!r} of {name!r} is not a number") from None
    if definition.unit != "rank":
        if 0 <= value <= 1:
            return value
        raise InputError(f"cutoff {text} of {name!r}: a {definition.unit} must lie between 0 and 1")
    if value < 1 or not value.is_integer():
        raise InputError(f"cutoff {text} of {name!r}: a rank must be a positive integer")
    return value
