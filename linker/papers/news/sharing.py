"""Shared content of two articles: the entities in both, by group, and the words and numbers in both."""

from collections.abc import Sequence
from dataclasses import dataclass

from linker.papers.news.articles import NewsPair
from linker.papers.news.entities import GROUPS, group_counts
from linker.papers.news.overlap import NUMBER, Overlap, stem, words_of
from linker.papers.news.recognise import Recogniser

TOP = 10  # shared words that are shown


@dataclass(frozen=True, slots=True)
class Shared:
    """`entities` holds the names per group, most frequent first; `words` the heaviest words and numbers."""

    entities: dict[str, list[str]]
    words: list[str]

    @property
    def entity_text(self) -> str:
        """The entities on one line, as in "GEO: london; ORG: acme, globex"."""
        return "; ".join(f"{group}: {', '.join(names)}" for group, names in self.entities.items())


def shared(
    pairs: Sequence[NewsPair], overlap: Overlap | None, recogniser: Recogniser | None, top: int = TOP
) -> list[Shared]:
    """Return the shared content of each pair's articles; without a `recogniser`, no entities.

    Words are compared by their first letters, as in `overlap`, and shown as in the first article, highest tf-idf
    product first; without an `overlap`, document frequencies come from the pairs themselves. Raises the same errors
    as `Recogniser.mentions`.
    """
    first, second = [pair.first for pair in pairs], [pair.second for pair in pairs]
    weights = overlap or Overlap.fit(dict.fromkeys(a.full for a in (*first, *second)))
    words = [shared_words(weights, a.full, b.full, top) for a, b in zip(first, second, strict=True)]
    if recogniser is None:
        return [Shared({}, terms) for terms in words]
    mentions = recogniser.mentions([*first, *second])
    counts = [group_counts(m, a.date) for m, a in zip(mentions, [*first, *second], strict=True)]
    entities = []
    for left, right in zip(counts[: len(pairs)], counts[len(pairs) :], strict=True):
        groups = {group: list((a & b).most_common()) for group, a, b in zip(GROUPS, left, right, strict=True)}
        entities.append({group: [name for name, _ in names] for group, names in groups.items() if names})
    return [Shared(names, terms) for names, terms in zip(entities, words, strict=True)]


def shared_words(overlap: Overlap, first: str, second: str, top: int = TOP) -> list[str]:
    """Return the `top` words and numbers in both texts, highest weight first, spelt as in the first text."""
    written = {stem(word): word for word in reversed(words_of(first))}
    written |= {number: number for number in NUMBER.findall(first)}
    products = overlap.products("words", first, second) | overlap.products("numbers", first, second)
    heaviest = sorted(products, key=lambda token: (-products[token], token))
    return [written[token] for token in heaviest[:top]]
