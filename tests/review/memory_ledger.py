"""A ledger in memory, and a small index, for tests of reviews."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from indexes.interface import Document
from linker.engine import Engine
from linker.review.interface import UNREAD, Judgement, Seed
from tests.helpers import HASH, make_engine


class MemoryLedger:
    """The slow, obvious ledger: a list of judgements and of undone ones."""

    def __init__(self, seeds: Sequence[Seed], **settings: Any) -> None:
        self.seeds, self._settings = tuple(seeds), dict(settings)
        self.entries: list[Judgement] = []

    @property
    def settings(self) -> Mapping[str, Any]:
        return dict(self._settings)

    def set(self, key: str, value: Any) -> None:
        self._settings[key] = value

    def add_all(self, judgements: Iterable[Judgement]) -> tuple[Judgement, ...]:
        added = tuple(judgements)
        self.entries += added
        return added

    def undo(self, reviewer: str) -> Judgement | None:
        for place in range(len(self.entries) - 1, -1, -1):
            if self.entries[place].reviewer == reviewer:
                return self.entries.pop(place)
        return None

    def judgements(self, reviewer: str | None = None, *, rows: bool = False) -> tuple[Judgement, ...]:
        standing = {(j.reviewer, j.seed, j.id): j for j in self.entries}
        return tuple(
            j for j in standing.values() if reviewer in (None, j.reviewer) and (rows or j.phase not in UNREAD)
        )


STORIES = {
    "flood": ["rain", "river", "water", "dam", "bridge", "valencia", "streets", "mud", "rescue"],
    "vote": ["parliament", "minister", "ballot", "party", "coalition", "election", "seats", "poll"],
    "match": ["goal", "striker", "keeper", "league", "penalty", "referee", "stadium", "coach"],
}


def documents() -> list[Document]:
    """Return 60 documents, 20 of each story, which share a few common words."""
    made = []
    for story, words in STORIES.items():
        for number in range(20):
            own_words = [words[(number * 3 + step * (1 + number % 4)) % len(words)] for step in range(5)]
            text = " ".join([*own_words, "today", "people", ("city", "country", "night")[number % 3]])
            made.append(
                Document(f"{story}{number}", text, metadata={"story": story, "even": number % 2 == 0})
            )
    return made


def engine_of(folder: Path, *, vectors: bool = True) -> Engine:
    """Return an engine over these documents, with or without vectors from a hash encoder."""
    return make_engine(folder, documents(), HASH if vectors else None)
