"""Links with both texts, as tables: all links found, or the least certain, for people to judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from indexes.interface import Document
from linker.base.errors import InputError
from linker.base.logs import logger
from linker.crosslingual.linking import LinkOutcome, Links
from linker.crosslingual.sides import UNKNOWN, Side
from linker.engine.evidence import Span
from linker.review.exporting.rows import ExportRow
from linker.review.exporting.writing import PAIRS, write_pairs
from linker.review.interface import Judgement, Seed

UNJUDGED: Any = ""


def check_doubts(path: Path, between: tuple[float, float]) -> None:
    """Raise InputError if the bounds or the file's name cannot be used, before anything is linked."""
    if not 0 <= between[0] <= between[1] <= 1:
        raise InputError(f"uncertain links are between two probabilities, such as .1 and .9, not {between}")
    if path.suffix.lower() not in PAIRS:
        raise InputError(f"cannot tell the format of {path}: its name must end in {', '.join(PAIRS)}")


def write_doubts(
    path: Path, outcome: LinkOutcome, source: Side, target: Side, between: tuple[float, float]
) -> int:
    """Write the links whose probability is `between` two bounds, the least certain first; return how many there are.

    Each record is a pair as `linker review export` writes it, with its passage and an empty verdict. Raises InputError
    if the file cannot be written.
    """
    doubts = [link for link in outcome.proposed if between[0] <= link[2] <= between[1]]
    doubts.sort(key=lambda link: (abs(link[2] - 0.5), link[0]))
    passages = outcome.links.passages
    write_pairs([_doubt(link, source, target, passages.get(link[0])) for link in doubts], path)
    logger.info("%s: %s links with a probability from %g to %g to judge", path, f"{len(doubts):,}", *between)
    return len(doubts)


def write_linked(path: Path, links: Links, source: Side, target: Side, *, probable: bool) -> None:
    """Write all links as a table, in the columns of `write_doubts` and with the rank of each target.

    `probable`: whether the scores are probabilities. Further columns, if known: P(none) of the text (`seed_none`),
    near copies of the target among the text's other targets (`copies`), and the passage of the first target that
    the text is about. Raises InputError if the file cannot be written.
    """
    write_pairs(list(_linked_rows(links, source, target, probable)), path)


def _linked_rows(links: Links, source: Side, target: Side, probable: bool) -> Iterator[ExportRow]:
    for one, of in links.run.items():
        none = {"none": round(links.none[one], 6)} if one in links.none else {}
        for rank, (other, score) in enumerate(of.items(), start=1):
            said: dict[str, Any] = {"rank": rank}
            if rank == 1 and one in links.copies:
                said["copies"] = " ".join(links.copies[one])
            passage = links.passages.get(one) if rank == 1 else None
            yield _row(source, one, target, other, (score, score if probable else None), none, said, passage)


def _doubt(link: tuple[str, str, float], source: Side, target: Side, passage: Span | None) -> ExportRow:
    p = round(link[2], 6)
    return _row(source, link[0], target, link[1], (p, p), {}, {}, passage)


def _row(
    source: Side,
    one: str,
    target: Side,
    other: str,
    said: tuple[float, float | None],
    more: Mapping[str, Any],
    others: Mapping[str, Any],
    passage: Span | None,
) -> ExportRow:
    """Return a pair with its score and probability (`said`), and the metadata of the text and the target."""
    first, second = source.documents[one], target.documents[other]
    named = source.code != target.code and UNKNOWN not in (source.code, target.code)  # else uninformative
    codes = [{"language": side.code} if named else {} for side in (source, target)]
    metadata = {**codes[0], **more, **first.metadata}
    seed = Seed(one, first.full_text, metadata=metadata)
    document = Document(other, second.full_text, "", {**codes[1], **others, **second.metadata})
    return ExportRow(
        Judgement(one, other, UNJUDGED, score=said[0], probability=said[1]), seed, document, passage
    )
