"""The groups of a review's documents, as a job made them and as people have changed them since.

People's changes to groups are kept in a separate ledger, `groups.sqlite`, as judgements on pairs of documents, so
that they outlive the next grouping. The tag TOGETHER merges the groups of `seed` and `id`, MOVED moves `id` to the
group of `seed`, APART removes the documents that it names from the group of `seed`. Judgements without one of these
tags belong to a sample of pairs.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from linker.base.errors import InputError
from linker.base.files import read_bytes, write_atomically
from linker.review.interface import Judgement
from linker.scoring.groups.asking import Stratum

TOGETHER, MOVED, APART = EDITS = "together", "moved", "apart"


@dataclass(frozen=True, slots=True)
class Item:
    """A document of a group, with P(it belongs with the others), its day, language and source ("" if unknown)."""

    id: str
    probability: float | None = None
    near_copy_of: str | None = None
    date: str = ""
    language: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Story:
    """A group; `probability` and `weakest` are None once people have changed it."""

    number: int
    title: str
    representative: str
    probability: float | None
    words: tuple[str, ...]
    weakest: tuple[str, str, float] | None
    leaving: tuple[str, ...]
    items: tuple[Item, ...]

    @property
    def dates(self) -> tuple[str, str]:
        """The first and the last day, empty if no document has one."""
        days = [item.date for item in self.items if item.date]
        return (min(days), max(days)) if days else ("", "")

    @property
    def languages(self) -> tuple[str, ...]:
        """The codes of its languages, the most frequent first."""
        return _frequent(item.language for item in self.items)

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of its documents, the most frequent first."""
        return _frequent(item.source for item in self.items)


@dataclass(frozen=True, slots=True)
class Grouped:
    """The groups that a job made: `documents` is how many it grouped, `stamp` changes with each run.

    `strata`: pairs to judge, by which the recall is estimated; none in files of earlier versions.
    """

    generation: int
    documents: int
    stamp: str
    stories: tuple[Story, ...]
    strata: tuple[Stratum, ...] = ()


def save(path: Path, grouped: Grouped) -> None:
    """Write groups as JSON, all or nothing. Raises InputError if the file cannot be written."""
    write_atomically(path, orjson.dumps(grouped))


def load(path: Path) -> Grouped:
    """Return the groups that `save` wrote. Raises InputError if the file is damaged."""
    try:
        values = orjson.loads(read_bytes(path))
        stories = tuple(_story(story) for story in values["stories"])
        strata = tuple(
            Stratum(int(stratum["of"]), tuple((str(one), str(other)) for one, other in stratum["pairs"]))
            for stratum in values.get("strata", ())
        )
        return Grouped(
            int(values["generation"]), int(values["documents"]), str(values["stamp"]), stories, strata
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raise InputError(
            f"{path} is not a file of groups: delete it, and group the documents again"
        ) from None


def _story(values: dict[str, Any]) -> Story:
    weak = values["weakest"]
    items = tuple(Item(**item) for item in values["items"])
    if len({item.id for item in items}) != len(items) or not items:
        raise ValueError("items")
    return Story(
        **values
        | {
            "words": tuple(values["words"]),
            "weakest": (str(weak[0]), str(weak[1]), float(weak[2])) if weak else None,
            "leaving": tuple(values["leaving"]),
            "items": items,
        }
    )


def is_edit(judgement: Judgement) -> bool:
    """Return whether a judgement changes groups; the others say whether two documents belong together."""
    return bool(judgement.tags) and judgement.tags[0] in EDITS


def edited(stories: Sequence[Story], judgements: Iterable[Judgement]) -> list[Story]:
    """Return the groups after people's changes, applied in the order of the judgements; singletons included.

    Judgements on documents in no group are ignored. A new group gets the next number.
    """
    items = {item.id: item for story in stories for item in story.items}
    inside = {story.number: [item.id for item in story.items] for story in stories}
    group = {item.id: story.number for story in stories for item in story.items}
    following = max(inside, default=0) + 1
    changed: set[int] = set()

    def put(ids: Iterable[str], to: int) -> None:
        for id_ in ids:
            inside[group[id_]].remove(id_)
            changed.update((group[id_], to))
            inside.setdefault(to, []).append(id_)
            group[id_] = to

    for judgement in filter(is_edit, judgements):
        one, other, tag = judgement.seed, judgement.id, judgement.tags[0]
        if one not in group or other not in group:
            continue
        if tag == APART:
            leaving = [i for i in judgement.tags[1:] if group.get(i) == group[one] and i != one]
            if leaving:
                put(leaving, following)
                following += 1
        elif group[one] != group[other]:
            put(list(inside[group[other]]) if tag == TOGETHER else [other], group[one])
    known = {story.number: story for story in stories}
    return [
        _regroup(known, number, [items[i] for i in ids]) if number in changed else known[number]
        for number, ids in inside.items()
        if ids
    ]


def _regroup(known: dict[int, Story], number: int, items: Sequence[Item]) -> Story:
    """Return a group that people changed, with the title of the group from which most of its documents come."""
    origin = {item.id: story for story in known.values() for item in story.items}
    counts = Counter(origin[item.id].number for item in items)
    ids = {item.id for item in items}
    of = known[max(counts, key=lambda n: (n == number, counts[n], -n))]
    representative = of.representative if of.representative in ids else items[0].id
    words = tuple(dict.fromkeys(word for n in counts for word in known[n].words))[:8]
    title = of.title if of.representative in ids else ""
    members = tuple(
        dataclasses.replace(item, near_copy_of=item.near_copy_of if item.near_copy_of in ids else None)
        for item in items
    )
    return Story(number, title, representative, None, words, None, (), members)


def _frequent(values: Iterable[str]) -> tuple[str, ...]:
    counts = Counter(filter(None, values))
    return tuple(sorted(counts, key=lambda value: (-counts[value], value)))
