"""The links that are least certain, with both texts, for people to judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from indexes.interface import Document
from linker.crosslingual.pages.pages import Pages
from linker.errors import InputError
from linker.logs import logger
from linker.review.exporting.rows import Row
from linker.review.exporting.writing import PAIRS, write_pairs
from linker.review.interface import Judgement, Seed

UNJUDGED: Any = ""
Proposed = Sequence[tuple[str, str, float]]


def check_doubts(path: Path, between: tuple[float, float]) -> None:
    """Raise InputError where the bounds or the file's name cannot be used, before anything is linked."""
    if not 0 <= between[0] <= between[1] <= 1:
        raise InputError(f"uncertain links are between two probabilities, such as .1 and .9, not {between}")
    if path.suffix.lower() not in PAIRS:
        raise InputError(f"cannot tell the format of {path}: its name must end in {', '.join(PAIRS)}")


def write_doubts(
    path: Path, source: Pages, target: Pages, proposed: Proposed, between: tuple[float, float]
) -> int:
    """Write the links whose probability is `between` two bounds, the least certain first; return how many there are.

    Each record is a pair as `linker review export` writes it, with an empty verdict. Raises InputError where the file
    cannot be written.
    """
    doubts = [link for link in proposed if between[0] <= link[2] <= between[1]]
    doubts.sort(key=lambda link: (abs(link[2] - 0.5), link[0]))
    write_pairs(list(_rows(doubts, source, target)), path)
    logger.info("%s: %s links with a probability from %g to %g to judge", path, f"{len(doubts):,}", *between)
    return len(doubts)


def _rows(doubts: Proposed, source: Pages, target: Pages) -> Iterator[Row]:
    for one, other, probability in doubts:
        p = round(probability, 6)
        first, second = source.texts[source.position[one]], target.texts[target.position[other]]
        seed = Seed(one, first, metadata={"language": source.language.code})
        document = Document(other, second, metadata={"language": target.language.code})
        yield Row(Judgement(one, other, UNJUDGED, score=p, probability=p), seed, document)
