"""The sentence that a journalist may use in an article's method note, and the claims that it does not support."""

import math
from dataclasses import dataclass

from linker.review.interface import Progress
from linker.review.stopping.rule import LEAST_FOUND, from_the_front, most_left_sentence
from linker.review.wording import DOCUMENTS, Sentence, joined, say, say_many


@dataclass(frozen=True, slots=True)
class MethodNote:
    """`text` may be published; `cautions` name unsupported claims, one sentence each."""

    text: Sentence
    cautions: tuple[Sentence, ...]


def method_note(
    progress: Progress,
    target: float,
    audited: int = 0,
    *,
    what: str = DOCUMENTS,
    source: str = "",
    alpha: float = 0.05,
    reading: Sentence | None = None,
) -> MethodNote:
    """Return the method note of a review at its current stage.

    target, alpha: the rule's. audited: documents read in audits. what: the documents, in the plural, such as "posts".
    source: their origin, such as "the channel of the ministry, January to March". reading: a sentence on the documents
    read and found that replaces the usual one.
    """
    sentences = [reading or _reading(progress, audited, source).about(what)]
    if progress.front and progress.read < progress.population:
        sentences.append(from_the_front(progress.front))
    if progress.prior:
        imported = say_many(
            "%(num)s of them had been judged before and was imported.",
            "%(num)s of them had been judged before and were imported.",
            progress.prior,
        )
        sentences.append(imported)
    if progress.read >= progress.population:
        return MethodNote(joined(sentences), (_JUDGED,))
    if progress.stop.estimated:
        sentences.append(
            say(
                "By an estimate from the order of reading, these are at least %(target)s of all relevant ones.",
                target=float(target),
            )
        )
    if (certified := progress.stop.certified) is not None:
        missed = say(
            "With %(confidence)s confidence, the share missed is at most %(share)s %%, if all verdicts are right.",
            confidence=1 - alpha, share=math.ceil(100 * (1 - certified) - 1e-9),
        )  # fmt: skip
        sentences.append(missed)
    by_order = progress.stop.by_order
    if by_order is not None and by_order.recall is not None:
        missed = say(
            "By the order of reading, the share missed is at most %(share)s %% with %(confidence)s confidence, if the "
            "first twentieth of the unread holds at least half of the relevant ones left and all verdicts are right.",
            confidence=1 - alpha, share=math.ceil(100 * (1 - by_order.recall) - 1e-9),
        )  # fmt: skip
        sentences.append(missed)
    if progress.stop.left is not None:
        sentences.append(most_left_sentence(progress.stop.left, alpha))
    return MethodNote(joined(sentences), _cautions(progress, target, what))


def _reading(progress: Progress, audited: int, source: str) -> Sentence:
    counts: dict[str, int | str] = {"population": progress.population, "found": progress.found}
    counts["origin"] = say(" from %(source)s", source=source) if source else ""
    if progress.read >= progress.population:
        return say("We read all %(population)s documents%(origin)s and found %(found)s relevant.", **counts)
    if not audited:
        return say(
            "In %(population)s documents%(origin)s, we read %(read)s and found %(found)s relevant.",
            read=progress.read, **counts,
        )  # fmt: skip
    return say(
        "In %(population)s documents%(origin)s, we read %(read)s, %(audited)s of them drawn at random from what was "
        "still unread, and found %(found)s relevant.",
        read=progress.read, audited=audited, **counts,
    )  # fmt: skip


_JUDGED = say("“Relevant” means judged relevant by the reviewers: no figure here covers wrong judgements.")


_BY_ORDER = say(
    "Do not give the share by the order of reading without its “if”: parts of the topic that resemble nothing found so "
    "far may lie anywhere in the order."
)


def _cautions(progress: Progress, target: float, what: str) -> tuple[Sentence, ...]:
    unread = say(
        "Do not write that all relevant documents were found: %(unread)s are unread.",
        unread=progress.population - progress.read,
    ).about(what)
    if progress.found < LEAST_FOUND:
        few = say(
            "Give no share at all: with fewer than %(least)s found, it is neither estimated nor bounded.",
            least=LEAST_FOUND,
        )
        return (unread, few, _on_the_limit(progress), _JUDGED)
    cautions = (unread, _on_the_estimate(progress, target), _on_the_limit(progress), _JUDGED)
    by_order = progress.stop.by_order
    is_bound = by_order is not None and by_order.recall is not None
    return (*cautions[:2], _BY_ORDER, *cautions[2:]) if is_bound else cautions


def _on_the_estimate(progress: Progress, target: float) -> Sentence:
    if progress.stop.estimated:
        return say(
            "Do not write “at least %(target)s” without “estimated”: the estimate assumes that a relevant document "
            "comes up much earlier than another one. It misses what does not resemble the documents found so far.",
            target=float(target),
        )
    return say(
        "Do not write that %(target)s were found: the stopping rule asks for more reading.",
        target=float(target),
    )


def _on_the_limit(progress: Progress) -> Sentence:
    if progress.stop.left is None and progress.stop.certified is None:
        return say(
            "Give no upper bound on what was missed: only documents drawn at random from the unread yield one."
        )
    return say(
        "The upper bound on what was missed holds at the stated confidence, whatever the order was. It is a bound, not "
        "an estimate: do not write that this many were missed."
    )
