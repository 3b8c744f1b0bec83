"""Names of measures: trec_eval's spelling, the modern one (`nDCG@10`), and the order trec_eval prints them in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from linker.errors import InputError

_RANKS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_RECALLS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

# In the order of trec_eval's own table. None: no cutoff; else the cutoffs that a bare name stands for.
MEASURES: Mapping[str, tuple[float, ...] | None] = {
    "runid": None,
    "num_q": None,
    "num_ret": None,
    "num_rel": None,
    "num_rel_ret": None,
    "map": None,
    "gm_map": None,
    "Rprec": None,
    "bpref": None,
    "recip_rank": None,
    "iprec_at_recall": _RECALLS,
    "P": _RANKS,
    "recall": _RANKS,
    "11pt_avg": None,
    "ndcg": None,
    "ndcg_cut": _RANKS,
    "success": (1, 5, 10),
    "set_P": None,
    "set_recall": None,
    "set_F": None,
    "unj": (5, 10, 20),
    "recip_rank_cut": (10,),
    "auc": None,
    "auc_micro": None,
    "auc_judged": None,
    "auc_judged_micro": None,
}
SUMMARY_ONLY = ("runid", "num_q", "gm_map", "auc_micro", "auc_judged_micro")  # not printed topic by topic
COUNTS = ("num_q", "num_ret", "num_rel", "num_rel_ret")
OFFICIAL = (
    "runid",
    *COUNTS, "map", "gm_map", "Rprec", "bpref", "recip_rank", "iprec_at_recall", "P",
)  # fmt: skip
DEFAULT = ("num_q", "map", "recip_rank", "success")

_ALIASES = {
    "mrr": "recip_rank", "rr": "recip_rank", "ap": "map", "hit": "success", "hits": "success", "s": "success",
    "p": "P", "precision": "P", "r": "recall", "rprec": "Rprec", "unjudged": "unj", "set_p": "set_P",
    "set_f": "set_F", "iprec": "iprec_at_recall", "gmap": "gm_map", "auc-roc": "auc", "roc_auc": "auc",
}  # fmt: skip
_CUT = {"ndcg": "ndcg_cut", "recip_rank": "recip_rank_cut"}  # the name once there is a cutoff
_NAME = re.compile(r"(?P<base>.+?)(?:[._@](?P<cuts>[0-9.]+(?:,[0-9.]+)*))?")


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure with its cutoff: `Measure("ndcg_cut", 10)` prints as `ndcg_cut_10`."""

    base: str
    cutoff: float | None = None

    def __str__(self) -> str:
        if self.cutoff is None:
            return self.base
        return (
            f"{self.base}_{self.cutoff:.2f}"
            if self.base == "iprec_at_recall"
            else f"{self.base}_{self.cutoff:.0f}"
        )


def parse(names: Iterable[str] | str) -> list[Measure]:
    """Read measure names (`map`, `P.5,10`, `success@1`, `nDCG@10`, `official`), in trec_eval's order, once each.

    Raises InputError on an unknown name or a cutoff that is no positive integer (for iprec: not in 0…1).
    """
    texts = names.split() if isinstance(names, str) else list(names)
    expanded = [n for text in texts for n in (OFFICIAL if text == "official" else (text,))]
    found = {measure for text in expanded for measure in _read(text)}
    if not found:
        raise InputError("no measure is asked for")
    place = list(MEASURES).index
    return sorted(found, key=lambda m: (place(m.base), m.cutoff or 0))


def _read(text: str) -> list[Measure]:
    match = _NAME.fullmatch(text)
    base = _base(match["base"]) if match else None
    if match is None or base is None:
        raise InputError(f"unknown measure {text!r}; known: official, {', '.join(MEASURES)}")
    base = _CUT.get(base, base) if match["cuts"] else base
    defaults = MEASURES[base]
    if match["cuts"] is None:
        return [Measure(base)] if defaults is None else [Measure(base, cut) for cut in defaults]
    if defaults is None:
        raise InputError(f"measure {base!r} takes no cutoff: {text!r}")
    return [Measure(base, _cutoff(base, cut, text)) for cut in match["cuts"].split(",")]


def _base(name: str) -> str | None:
    lower = {known.lower(): known for known in MEASURES}
    return name if name in MEASURES else lower.get(name.lower()) or _ALIASES.get(name.lower())


def _cutoff(base: str, text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"cutoff {text!r} of {name!r} is no number") from None
    if base == "iprec_at_recall":
        if 0 <= value <= 1:
            return value
        raise InputError(f"cutoff {text} of {name!r}: a recall lies between 0 and 1")
    if value < 1 or not value.is_integer():
        raise InputError(f"cutoff {text} of {name!r}: a rank is a positive integer")
    return value
