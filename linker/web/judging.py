"""What a judging page shows of a document, and verdicts on a document with its near duplicates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from indexes.interface import filter_values
from linker.errors import InputError
from linker.review.evidence import Evidence, evidence, rarest_words
from linker.review.folding import copies
from linker.review.interface import Candidate, Judgement, Seed, Verdict
from linker.web.reviews import Opened

LONGEST = 40_000  # characters of a text that are shown at first
LEAD = 280  # characters of a seed that stand for all of it
COPY_OF = "copy of "  # the tag of a judgement that was made together with another document's
WORDS = 6  # shared words that are named
WRAPPED = re.compile(r"(?<=[^\n]{40}[^\n.!?:;])(?<!\n)\n(?=\w)")  # the line's end
KNOWN = 256  # documents whose copies are remembered


@dataclass(frozen=True, slots=True)
class Shown:
    """A candidate with all that its page shows; `rest` is how many characters of its text are left out.

    `seed_number` counts from 1, 0 where the seed is none of the review's any more.
    """

    candidate: Candidate
    title: Evidence
    text: Evidence
    words: tuple[tuple[str, float], ...]
    metadata: Mapping[str, str]
    rest: int
    seed: Seed | None
    seed_number: int
    copies: int = 0

    @property
    def seed_text(self) -> str:
        """The seed's text, whole."""
        return unwrapped(self.seed.text) if self.seed else ""

    @property
    def lead(self) -> str:
        """The beginning of the seed's text, on one line."""
        flat = " ".join(self.seed_text[: 4 * LEAD].split())
        return flat if len(flat) <= LEAD else flat[:LEAD].rsplit(" ", 1)[0] + " …"


def shown(opened: Opened, candidate: Candidate, *, whole: bool = False) -> Shown:
    """Return what the page shows of a candidate. Raises InputError where its document is not in the index."""
    if candidate.id not in opened.engine:
        raise InputError(f"the document {candidate.id!r} is not in this review: it may have been deleted")
    document = opened.engine.document(candidate.id)
    number, seed = seed_of(opened, candidate.seed)
    text = unwrapped(document.text if whole else document.text[:LONGEST])
    beside = seed.full_text if seed else ""
    collection = opened.engine.collection
    both = evidence(collection, beside, f"{document.title}\n{text}")
    title, body = _split(both, len(document.title))
    return Shown(
        candidate,
        title,
        body,
        both.words[:WORDS],
        {
            name: line
            for name, value in document.metadata.items()
            if (line := ", ".join(filter_values(value)))
        },
        len(document.text) - len(text),
        seed,
        number,
        0 if candidate.phase == "search" else len(group(opened, candidate.id)),
    )


def unwrapped(text: str) -> str:
    """Return a text without the line ends of a wrapped file (newswire, e-mail), a character for a character.

    A line of 40 to 80 characters without a full stop, before one that goes on, was wrapped; two of them may be chance.
    """
    found = [match.start() for match in WRAPPED.finditer(text)]
    if len(found) < 3:
        return text
    characters = list(text)
    for place in found:
        characters[place] = " "
    return "".join(characters)


def seed_of(opened: Opened, id_: str) -> tuple[int, Seed | None]:
    """Return a seed's number from 1 and the seed; 0 and None where the review has none of this id."""
    found = ((number, seed) for number, seed in enumerate(opened.review.seeds, start=1) if seed.id == id_)
    return next(found, (0, None))


def group(opened: Opened, id_: str) -> tuple[str, ...]:
    """Return the ids of the near duplicates of a document, without it and the seeds."""
    seeds = {seed.document for seed in opened.review.seeds}
    return tuple(other for other in _copies(opened, id_) if other not in seeds)


def _copies(opened: Opened, id_: str) -> tuple[str, ...]:
    known = opened.copies
    if id_ not in known:
        while len(known) >= KNOWN:
            known.pop(next(iter(known)), None)
        document = opened.engine.document(id_)
        query = rarest_words(opened.engine.collection, document.full_text)
        known[id_] = copies(opened.engine, document, query=query)
    return known[id_]


def judge_group(
    opened: Opened,
    candidate: Candidate,
    verdict: Verdict,
    reviewer: str,
    note: str,
    tags: Sequence[str],
    others: Sequence[str],
) -> None:
    """Store a verdict on a document, and the same on its copies that nobody has judged.

    The copies were not drawn: they count as found beside the queue, so that no audit takes them for random ones.
    """
    review = opened.review
    review.judge(candidate, verdict, reviewer, note, tags)
    if not others:
        return
    judged = {
        j.id
        for j in opened.ledger.judgements()
        if review.settings.unit == "topic" or j.seed == candidate.seed
    }
    for id_ in others:
        if id_ not in judged:
            copy = replace(candidate, id=id_, rank=0, phase="search")
            review.judge(copy, verdict, reviewer, "", (*tags, f"{COPY_OF}{candidate.id}"))


def undo_group(opened: Opened, reviewer: str) -> Judgement | None:
    """Undo the reviewer's last judgement, with those of the copies that were made together with it."""
    while (last := opened.ledger.last(reviewer)) and any(tag.startswith(COPY_OF) for tag in last.tags):
        opened.ledger.undo(reviewer)
    return opened.review.undo(reviewer)


def _split(both: Evidence, title: int) -> tuple[Evidence, Evidence]:
    """Return the evidence in the title, which has so many characters and ends before a newline, and in the text."""
    first: list[tuple[str, bool]] = []
    second: list[tuple[str, bool]] = []
    position = 0
    for piece, marked in both.pieces:
        cut = max(0, title - position)
        if piece[:cut]:
            first.append((piece[:cut], marked))
        rest = piece[cut:] if position > title else piece[cut + 1 :]
        if rest:
            second.append((rest, marked))
        position += len(piece)
    return Evidence(both.words, tuple(first)), Evidence(both.words, tuple(second))
