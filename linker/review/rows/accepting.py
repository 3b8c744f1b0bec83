"""Accept the open rows' best candidates unread: an estimate of how many are wrong, and an upper bound.

There are two bounds, which hold with 95 % confidence. If the index has a calibration, half of the allowed error goes to
its guaranteed precision of first candidates (Learn then Test), and half to the number of wrong links that a list of
this precision may contain by chance. Otherwise, people check rows drawn at random from those to accept, and the bound
is Clopper and Pearson's for the other rows; the i-th check may err with probability α/2^i, so checks can be repeated.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from linker.base.errors import InputError
from linker.review.rows.candidates import Match, Matches
from linker.review.rows.states import Row, by_probability
from linker.review.stopping.bounds import least, most_left

ALPHA = 0.05
LEVELS = (0.99, 0.95, 0.9, 0.8)
LEVEL = 0.95
MOST_CHECKED = 60  # maximum number of rows per check, which takes at most half of the rows


@dataclass(frozen=True, slots=True)
class Check:
    """The `number`-th check of a review: rows to accept, in random order, of which people read the first `size`."""

    level: float
    pairs: tuple[tuple[str, str], ...]
    size: int
    number: int

    @classmethod
    def of(cls, values: Any) -> Self | None:
        """Return the check in a ledger's settings, or None if there is none."""
        if not isinstance(values, Mapping):
            return None
        try:
            pairs = tuple((str(seed), str(id_)) for seed, id_ in values["pairs"])
            return cls(float(values["level"]), pairs, int(values["size"]), int(values["number"]))
        except (KeyError, TypeError, ValueError):
            raise InputError("the check in the review's settings cannot be read: begin another one") from None

    @property
    def sample(self) -> tuple[tuple[str, str], ...]:
        """The rows to read, with the candidate to check."""
        return self.pairs[: self.size]

    def open(self, rows: Mapping[str, Row]) -> list[str]:
        """Return the seeds in the sample that are still to be read."""
        return [seed for seed, id_ in self.sample if _verdict(rows.get(seed), id_) is None]

    def wrong(self, rows: Mapping[str, Row]) -> int:
        """Return how many links of the sample were judged wrong."""
        return sum(_verdict(rows.get(seed), id_) is False for seed, id_ in self.sample)

    def most(self, wrong: int) -> int:
        """Return an upper bound on the wrong links outside the sample, if `wrong` in the sample are wrong."""
        return most_left(len(self.pairs), self.size, wrong, ALPHA / 2**self.number) - wrong


@dataclass(frozen=True, slots=True)
class Offer:
    """Open rows to accept at a `level`, each with its best candidate: about `expected` are wrong, at most `most`.

    `most` is None if nothing is certified. `held`: the number of calibration links that the guarantee is based on.
    `check`: the check that the bound is based on, in progress (`under_way`: `unread` rows are left to read, `wrong`
    were wrong so far), complete, or about to begin.
    """

    level: float
    links: tuple[tuple[Row, Match], ...]
    expected: float
    most: int | None = None
    held: int = 0
    check: Check | None = None
    unread: int = 0
    wrong: int = 0
    under_way: bool = False


def offer(rows: Sequence[Row], matches: Matches, level: float = LEVEL, check: Check | None = None) -> Offer:
    """Return which rows can be accepted now, by the index's guaranteed precision or, without one, by the check.

    Raises InputError for a level that is not in LEVELS.
    """
    if level not in LEVELS:
        raise InputError(
            f"unsupported level {level:g}: choose one of {', '.join(f'{one:g}' for one in LEVELS)}"
        )
    if matches.held and (promise := matches.promise(level, ALPHA / 2)):
        return _promised(rows, level, promise.threshold, promise.held)
    if check is not None and check.level == level:
        return _checked(rows, level, check)
    links = _above(rows, level)
    return Offer(level, links, _expected(links), check=drawn(links, level, check))


def drawn(links: Sequence[tuple[Row, Match]], level: float, before: Check | None = None) -> Check | None:
    """Return the check for these rows, or None if there are too few; equal arguments give the same draw."""
    if len(links) < 2:
        return None
    number = before.number + 1 if before else 1
    pairs = sorted((row.seed.id, match.id) for row, match in links)
    random.Random(f"{number} {level}").shuffle(pairs)
    return Check(level, tuple(pairs), min(MOST_CHECKED, -(-len(pairs) // 2)), number)


def _promised(rows: Sequence[Row], level: float, threshold: float, held: int) -> Offer:
    """Return the offer by guaranteed precision, which covers all first candidates above the threshold, read or not."""
    above = [row for row in rows if row.candidates and row.candidates[0].probability >= threshold]
    links = tuple((r, r.candidates[0]) for r in by_probability(above) if _is_free(r, r.candidates[0].id))
    wrong = sum(_verdict(row, row.candidates[0].id) is False for row in above)
    most = max(0, min(len(links), most_wrong(len(above), level, ALPHA / 2) - wrong))
    return Offer(level, links, _expected(links), most, held)


def _checked(rows: Sequence[Row], level: float, check: Check) -> Offer:
    by_seed = {row.seed.id: row for row in rows}
    unread, wrong = len(check.open(by_seed)), check.wrong(by_seed)
    rest = [(by_seed[seed], id_) for seed, id_ in check.pairs[check.size :] if seed in by_seed]
    links = tuple((row, Match(id_, row.chance(id_) or 0.0)) for row, id_ in rest if _is_free(row, id_))
    most = None if unread else min(len(links), check.most(wrong))
    return Offer(level, links, _expected(links), most, 0, check, unread, wrong, under_way=unread > 0)


def most_wrong(count: int, precision: float, alpha: float) -> int:
    """Return an upper bound, up to error `alpha`, on the number of wrong links among `count` with this precision."""
    from scipy.special import bdtr

    return least(lambda wrong: float(bdtr(wrong, count, 1 - precision)) >= 1 - alpha, 0, count)


def _above(rows: Sequence[Row], level: float) -> tuple[tuple[Row, Match], ...]:
    found = [(row, row.left[0]) for row in by_probability(rows) if row.state == "open" and row.left]
    return tuple((row, match) for row, match in found if match.probability >= level)


def _expected(links: Sequence[tuple[Row, Match]]) -> float:
    return sum(1 - match.probability for _, match in links)


def _is_free(row: Row, id_: str) -> bool:
    return row.state == "open" and id_ not in row.rejected


def _verdict(row: Row | None, id_: str) -> bool | None:
    """Return whether people judged a document to be the row's match; None if nobody has read it."""
    if row is None:
        return False  # the row is gone: nobody will judge it
    judgement = row.links.get(id_)
    if (judgement and judgement.phase != "accepted") or id_ in row.copies:
        return True
    if id_ in row.rejected or (row.state != "open" and not row.accepted):
        return False
    return None
