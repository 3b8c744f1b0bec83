"""Mistakes of predicted news similarities: the pairs farthest from the human score, and their kinds."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from indexes.dtypes import BoolArray, Float64Array
from linker.papers.news.articles import NewsPair
from linker.papers.news.entities import GROUPS, group_counts
from linker.papers.news.recognise import Recogniser
from linker.scoring.pairs.words import count_words

SERIOUS = 1.5  # minimum difference in points between the prediction and the human score
SHOWN = 12  # maximum number of entities shown per article, the most frequent of each group


@dataclass(frozen=True, slots=True)
class Mistake:
    """A pair whose prediction is far off; `first` and `second` are the entities of its articles, if requested."""

    id: str
    kind: str
    human: float
    predicted: float
    first: list[str]
    second: list[str]

    def text(self) -> str:
        """Return the mistake on one line, and the entities of each article on one more."""
        head = f"{self.id}  {self.kind}  people {self.human:.2f}, predicted {self.predicted:.2f}"
        sides = (self.first, self.second)
        return "\n".join([head, *(f"  {n}: {', '.join(side)}" for n, side in enumerate(sides, 1) if side)])

    def to_dict(self) -> dict[str, Any]:
        """Return the mistake as JSON values."""
        return asdict(self)


def mistakes(
    pairs: Sequence[NewsPair],
    scores: Float64Array,
    least: float = SERIOUS,
    recogniser: Recogniser | None = None,
) -> list[Mistake]:
    """Return the pairs whose score in `scores` [n] differs from the human score by at least `least`, worst first.

    With a `recogniser`, the entities of both articles are included. Pairs without a human score are left out.
    """
    far = [
        (abs(score - pair.score), pair, score)
        for pair, score in zip(pairs, scores.tolist(), strict=True)
        if pair.score is not None and abs(score - pair.score) >= least
    ]
    far.sort(key=lambda row: (-row[0], row[1].id))
    articles = [article for _, pair, _ in far for article in (pair.first, pair.second)]
    every = recogniser.mentions(articles) if recogniser else [[] for _ in articles]
    entities = []
    for mentions, article in zip(every, articles, strict=True):
        counts = zip(GROUPS, group_counts(mentions, article.date if mentions else ""), strict=True)
        entities.append(
            [f"{group} {name}" for group, count in counts for name, _ in count.most_common(SHOWN // 4)]
        )
    return [
        Mistake(pair.id, pair.kind, pair.score or 0.0, score, first, second)
        for (_, pair, score), first, second in zip(far, entities[::2], entities[1::2], strict=True)
    ]


def kinds_of(pairs: Sequence[NewsPair]) -> dict[str, BoolArray]:
    """Return kind → which of n scored pairs are of this kind, bool [n]. Kinds are language pairs, lengths and scores.

    Lengths are thirds of the pairs by the number of words of the shorter article.
    """
    lengths = np.array([min(count_words(a.full) for a in (pair.first, pair.second)) for pair in pairs])
    low, high = (round(float(q)) for q in np.quantile(lengths, (1 / 3, 2 / 3)))
    score = np.array([pair.score for pair in pairs], dtype=float)
    languages = {kind: np.array([p.kind == kind for p in pairs]) for kind in sorted({p.kind for p in pairs})}
    return {
        "all pairs": np.ones(len(pairs), dtype=bool),
        **(languages if len(languages) > 1 else {}),
        f"shorter article of up to {low} words": lengths <= low,
        f"of {low + 1} to {high} words": (lengths > low) & (lengths <= high),
        f"of more than {high} words": lengths > high,
        "people's score below 2": score < 2,
        "people's score from 2 to 3": (score >= 2) & (score <= 3),
        "people's score above 3": score > 3,
    }


def share_names(pairs: Sequence[NewsPair], recogniser: Recogniser) -> BoolArray:
    """Return whether both articles name a place, person or organisation, bool [n]. Raises as the recogniser does."""
    articles = [article for pair in pairs for article in (pair.first, pair.second)]
    names = []
    for mentions in recogniser.mentions(articles):
        places, organisations, *_ = group_counts(mentions)
        names.append({*places, *organisations})
    return np.array([bool(a & b) for a, b in zip(names[::2], names[1::2], strict=True)])
