"""Groups that keep their numbers as a corpus grows, and their changes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["began", "joined", "merged", "split", "left"]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a group: the documents `ids`, which were in the group `other` before, if in any.

    "began": a new group of two or more that continues no earlier one; "joined": new documents; "merged": documents of
    another group, which is gone; "split": documents of another group, which continues; "left": documents that are gone.
    """

    change: Kind
    group: int
    ids: tuple[str, ...]
    other: int | None = None


def continue_numbers(before: Mapping[str, int], after: Mapping[str, int], least: int = 1) -> dict[int, int]:
    """Return, for each group of `after` (document → group), the number of the group of `before` that it continues.

    That is the group with which it shares the most documents. The largest overlaps come first, and each number is used
    once; a group that shares documents only with groups already continued, or with none, gets a new number, which is
    `least` or higher. New documents that are alone, which are in no log, get the last numbers.
    """
    shared = Counter((group, before[id_]) for id_, group in after.items() if id_ in before)
    number: dict[int, int] = {}
    used: set[int] = set()
    for (group, earlier), _ in sorted(shared.items(), key=lambda item: (-item[1], item[0][1], item[0][0])):
        if group not in number and earlier not in used:
            number[group] = earlier
            used.add(earlier)
    following = max(least, 1 + max(before.values(), default=0))
    sizes = Counter(after.values())
    alone = {group for id_, group in after.items() if sizes[group] == 1 and id_ not in before}
    for group in sorted(dict.fromkeys(after.values()), key=alone.__contains__):
        if group not in number:
            number[group], following = following, following + 1
    return number


def changes(before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[Change]:
    """Yield the changes between two groupings (document → group) with numbers from `continue_numbers`.

    Documents that were alone and still are, and new ones that are alone, are not changes.
    """
    now, then = _members(after), _members(before)
    for group, ids in now.items():
        if group not in then:
            if len(ids) > 1 or ids[0] in before:
                yield Change("began", group, ids)
            origins = Counter(before[id_] for id_ in ids if id_ in before)
        else:
            new = tuple(id_ for id_ in ids if id_ not in before)
            if new:
                yield Change("joined", group, new)
            origins = Counter(before[id_] for id_ in ids if before.get(id_, group) != group)
        for other in sorted(origins):
            moved = tuple(id_ for id_ in ids if before.get(id_) == other)
            yield Change("split" if other in now else "merged", group, moved, other)
    for group, ids in then.items():
        if gone := tuple(id_ for id_ in ids if id_ not in after):
            yield Change("left", group, gone)


def replay(before: Mapping[str, int], log: Iterable[Change]) -> dict[str, int]:
    """Return the grouping (document → group) that results from applying the changes to an earlier one."""
    found = dict(before)
    for change in log:
        if change.change == "left":
            for id_ in change.ids:
                found.pop(id_, None)
        else:
            found.update(dict.fromkeys(change.ids, change.group))
    return found


def _members(groups: Mapping[str, int]) -> dict[int, tuple[str, ...]]:
    found: dict[int, list[str]] = {}
    for id_, group in groups.items():
        found.setdefault(group, []).append(id_)
    return {group: tuple(ids) for group, ids in found.items()}
