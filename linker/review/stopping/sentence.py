"""The sentence that a journalist may put into an article's method note, and what may not be claimed beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from linker.review.interface import Progress
from linker.review.stopping.rule import LEAST_FOUND


@dataclass(frozen=True, slots=True)
class MethodNote:
    """`text` may be published; `cautions` say what may not be claimed, one sentence each."""

    text: str
    cautions: tuple[str, ...]


def method_note(
    progress: Progress,
    target: float,
    audited: int = 0,
    *,
    what: str = "documents",
    source: str = "",
    alpha: float = 0.05,
) -> MethodNote:
    """Return the method note of a review as far as it is.

    target, alpha: the rule's. audited: documents that were read in audits. what: the documents, in the plural, such as
    "posts". source: where they are from, such as "the channel of the ministry, January to March".
    """
    origin = f" from {source}" if source else ""
    drawn = f", {audited:,} of them drawn at random from what was still unread," if audited else ""
    read = f"In {progress.population:,} {what}{origin}, we read {progress.read:,}{drawn} and found {progress.found:,}"
    sentences = [f"{read} relevant."]
    if progress.read >= progress.population:
        return MethodNote(f"We read all {progress.population:,} {what}{origin} and found {progress.found:,} relevant.",
                          (_JUDGED,))  # fmt: skip
    if progress.stop.estimated:
        sentences.append(
            f"By an estimate from the order of reading, these are at least {target:.0%} of all relevant ones."
        )
    if (certified := progress.stop.certified) is not None:
        share = math.ceil(100 * (1 - certified) - 1e-9)
        sentences.append(f"With {1 - alpha:.0%} confidence, the share missed is at most {share} %.")
    return MethodNote(" ".join(sentences), _cautions(progress, target, what))


_JUDGED = "“Relevant” is what the reviewers took for it: no figure here covers wrong judgements."


def _cautions(progress: Progress, target: float, what: str) -> tuple[str, ...]:
    cautions = [
        f"Do not write that all relevant {what} were found: {progress.population - progress.read:,} are unread."
    ]
    if progress.found < LEAST_FOUND:
        cautions.append(
            f"Give no share at all: with fewer than {LEAST_FOUND} found, neither estimate nor bound is made."
        )
        return (*cautions, _JUDGED)
    if progress.stop.estimated:
        cautions.append(
            f"Do not write “at least {target:.0%}” without “estimated”: the estimate supposes that a relevant document "
            "comes up much earlier than another one. It misses what does not resemble the documents found so far."
        )
    else:
        cautions.append(
            f"Do not write that {target:.0%} were found: the stopping rule asks for more reading."
        )
    if progress.stop.certified is None:
        cautions.append(
            "Give no upper limit of what was missed: only an audit of random unread documents yields one."
        )
    else:
        cautions.append(
            "The limit of the share missed is certain to the confidence given, whatever the order was. It is a limit "
            "and no estimate: do not write that so many were missed."
        )
    return (*cautions, _JUDGED)
