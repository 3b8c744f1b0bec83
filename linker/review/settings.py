"""The settings of a review, which are stored in its ledger and checked here."""

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

from indexes.hybrid import MODES, Mode
from linker.base.errors import InputError

Unit = Literal["topic", "pairs"]
OrderName = Literal["feedback", "probability", "z", "rank"]
KINDS: dict[str, tuple[type, ...]] = {
    "target": (int, float), "rule_options": (dict,), "until": (int,), "per_seed": (bool,), "double": (bool,),
    "audit": (int,), "where": (list, tuple), "seed": (int,), "threshold": (int, float), "score": (int, float),
}  # fmt: skip
# The minimum number of seeds to suggest pairs: fewer may all be about one story and yet share no words.
FEWEST = 10
SEEDS, DOCUMENTS, CHARACTERS = 40, 1000, 3000  # at most this many are examined; characters: of each text
TOP = 0.01  # share of the documents that count as a seed's nearest, at most ten
SHARED = 0.045  # minimum mean overlap of the nearest documents of two seeds in a topic; 0.01 by chance
OFTEN = 0.1  # a word in more than this share of the documents is not informative
# A word shows that all seeds are about one story if it is in at least this share of them, and at least this many times
# as frequent as in the documents.
COMMON, TIMES = 0.5, 2
WORD = re.compile(r"[^\W\d_]{4,}")
ADDRESS = re.compile(r"(?:https?://|www\.|\w+\.\w+\.?\w*/)\S+")


@dataclass(frozen=True, slots=True)
class Settings:
    """How documents are ordered, and when to stop; other entries of a ledger's settings are ignored here.

    unit: "topic" (all seeds describe one story; a document is judged once) or "pairs" (each seed has its own links).
    order: "feedback" learns from judgements (a topic's default); without it, seeds are merged by "probability", "z"
    or "rank" (see `linker.review.orders`), None: by probability if the index has a calibration, else by z. target:
    the recall to reach, 0 to 1. rule, rule_options: the stopping rule by name, None: "expected" for pairs, else "urn".
    until: stop after that many relevant documents; with `per_seed`, after that many per seed. mode, where: as in a
    search. double: every document is judged by two reviewers. audit: documents per audit. seed: the seed of all random
    draws. threshold, score: a seed's candidates end at the first with a lower probability, or retrieval score.
    """

    unit: Unit = "topic"
    order: OrderName | None = None
    target: float = 0.9
    rule: str | None = None
    rule_options: Mapping[str, Any] = field(default_factory=dict)
    until: int | None = None
    per_seed: bool = False
    mode: Mode | None = None
    where: tuple[str, ...] = ()
    double: bool = False
    audit: int = 300
    seed: int = 0
    threshold: float | None = None
    score: float | None = None

    def __post_init__(self) -> None:
        if self.unit not in get_args(Unit):
            raise InputError(f"unknown unit {self.unit!r} of a review: choose topic or pairs")
        if self.order is not None and self.order not in get_args(OrderName):
            raise InputError(f"unknown order {self.order!r}: choose one of {', '.join(get_args(OrderName))}")
        if self.mode is not None and self.mode not in MODES:
            raise InputError(f"unknown mode {self.mode!r} of a review: choose one of {', '.join(MODES)}")
        if self.order == "feedback" and self.unit == "pairs":
            raise InputError(
                "an order that learns needs one topic: choose another order for seeds with links of their own"
            )
        if self.per_seed and self.unit == "topic":
            raise InputError(
                "all seeds of a topic share their documents: to stop each seed separately, choose the unit 'pairs'"
            )
        if self.rule == "expected" and self.unit == "topic":
            raise InputError(
                "the stopping rule 'expected' is for seeds with links of their own: choose another one for a topic"
            )
        if self.learns and not (self.threshold is None and self.score is None):
            raise InputError(
                "an order that learns has scores of its own: a threshold needs an order without feedback"
            )
        if not 0 < self.target <= 1:
            raise InputError(f"a target recall of {self.target}: give a number above 0 and at most 1")
        for name in ("until", "audit"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise InputError(f"{name} = {value}: give a number of documents, at least 1")

    @property
    def learns(self) -> bool:
        """Whether the order learns from judgements."""
        return self.order == "feedback" or (self.order is None and self.unit == "topic")

    @property
    def enough(self) -> int | None:
        """How many matches suffice for a row: one or, with `per_seed`, `until` (None: a row is never complete)."""
        return self.until if self.per_seed else 1

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the settings among a ledger's values. Raises InputError if one is invalid."""
        chosen = {name: values[name] for name in cls.__slots__ if values.get(name) is not None}
        for name, value in chosen.items():
            if not isinstance(value, KINDS.get(name, (str,))) or (
                isinstance(value, bool) and bool not in KINDS.get(name, ())
            ):
                raise InputError(f"the review's setting {name} = {value!r} is invalid: set another value")
        if "where" in chosen:
            chosen["where"] = tuple(chosen["where"])
        return cls(**chosen)


def guess_unit(seeds: Sequence[str], documents: Sequence[str]) -> Unit:
    """Return "topic" if there are few seeds, or if they lead to the same documents; else "pairs".

    Seeds that share no words with the documents (being in another language) are about one story if half of them share a
    word.
    """
    if len(seeds) < FEWEST:
        return "topic"
    ours, theirs = _words(_spread(seeds, SEEDS)), _words(_spread(documents, DOCUMENTS))
    near = _nearest(ours, theirs)
    if sum(map(bool, near)) < len(near) / 2:
        return "topic" if _has_common_word(ours, theirs) else "pairs"
    most = max(map(len, near))
    shared = [len(a & b) / most for a, b in itertools.combinations(near, 2)]
    return "topic" if sum(shared) >= SHARED * len(shared) else "pairs"


def _spread(texts: Sequence[str], most: int) -> Sequence[str]:
    """Return a sample of the texts, evenly spread, since files are often in chronological order."""
    return texts[:: math.ceil(len(texts) / most)] if texts else texts


def _words(texts: Iterable[str]) -> list[frozenset[str]]:
    """Return the words of each text, leaving out web addresses, whose words occur in posts about every story."""
    return [frozenset(WORD.findall(ADDRESS.sub("", text[:CHARACTERS].lower()))) for text in texts]


def _nearest(seeds: Sequence[frozenset[str]], documents: Sequence[frozenset[str]]) -> list[set[int]]:
    """Return the positions of the documents most similar to each seed, by the cosine of rare words."""
    postings = defaultdict(list)
    for number, words in enumerate(documents):
        for word in words:
            postings[word].append(number)
    weights = {
        word: math.log(1 + len(documents) / len(numbers)) ** 2
        for word, numbers in postings.items()
        if len(numbers) <= max(1, OFTEN * len(documents))
    }
    lengths = [math.sqrt(sum(weights.get(word, 0) for word in words)) for words in documents]
    count, nearest = min(10, math.ceil(TOP * len(documents))), []
    for words in seeds:
        scores: dict[int, float] = defaultdict(float)
        for word in words & weights.keys():
            for number in postings[word]:
                scores[number] += weights[word] / lengths[number]
        # a seed that is itself a document would be its own nearest document
        same = [number for number in scores if documents[number] == words]
        for number in same:
            del scores[number]
        nearest.append(set(sorted(scores, key=scores.__getitem__, reverse=True)[:count]))
    return nearest


def _has_common_word(seeds: Sequence[frozenset[str]], documents: Sequence[frozenset[str]]) -> bool:
    ours, theirs = (Counter(itertools.chain.from_iterable(texts)) for texts in (seeds, documents))
    return any(
        count / len(seeds) >= max(COMMON, TIMES * theirs[word] / max(len(documents), 1))
        for word, count in ours.items()
    )
