"""A judging page's content: a document, its near duplicates, and the seeds that it may be judged for."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from indexes.errors import Reason
from indexes.interface import filter_values
from linker.base.errors import InputError
from linker.engine.evidence import SharedWords, evidence, rarest_words
from linker.engine.folding import copies
from linker.review.interface import Candidate, Seed, Verdict
from linker.server.shelf import Opened

LONGEST = 40_000  # maximum number of characters of a text to show at first
READ = 600  # maximum number of characters of a foreign text to translate
LEAD = 220  # maximum length in characters of a seed in its short form
BRIEF = 700  # maximum length in characters of a candidate, or of a row, in its short form
LIKELIEST = 8  # maximum number of seeds offered for a document
LABEL = 60  # maximum length in characters of a seed's label
WORDS = 6  # maximum number of shared words that are named
WRAPPED = re.compile(r"(?<=[^\n]{40}[^\n.!?:;])(?<!\n)\n(?=\w)")  # the newline after a wrapped line
KNOWN = 256  # maximum number of documents whose copies are cached


@dataclass(frozen=True, slots=True)
class Shown:
    """A candidate with everything its page shows; `rest` is the number of characters of its text that are left out.

    `language` and `translation`: if one of the index's lexicons translates it, its language and its translated words.
    `seed_number` counts from 1, 0 if the seed is no longer in the review; `seed_text` is its whole text.
    """

    candidate: Candidate
    evidence: SharedWords
    words: tuple[tuple[str, float], ...]
    metadata: Mapping[str, str]
    rest: int
    seed: Seed | None
    seed_number: int
    seed_text: str
    copies: int = 0
    language: str = ""
    translation: str = ""

    @property
    def lead(self) -> str:
        """The beginning of the seed's text, on one line."""
        return beginning(self.seed_text, LEAD)

    @property
    def brief(self) -> SharedWords | None:
        """An excerpt around the passage; None if the whole text is not much longer."""
        length = sum(len(piece) for piece, _ in self.evidence.pieces)
        return self.evidence.excerpt(BRIEF) if length > 1.5 * BRIEF else None


def beginning(text: str, most: int) -> str:
    """Return the beginning of a text on one line: at most `most` characters, cut between words."""
    flat = " ".join(text[: 4 * most].split())
    return flat if len(flat) <= most else flat[:most].rsplit(" ", 1)[0] + " …"


def document_view(opened: Opened, candidate: Candidate, *, whole: bool = False) -> Shown:
    """Return the page's view of a candidate. Raises InputError if its document is not in the index."""
    if candidate.id not in opened.engine:
        text = f"the document {candidate.id!r} is not in this review: it may have been deleted"
        raise InputError(Reason(text, "gone"))
    document = opened.engine.document(candidate.id)
    number, seed = seed_of(opened, candidate.seed)
    text = unwrap(document.text if whole else document.text[:LONGEST])
    seed_text = seed.full_text if seed else ""
    shared = evidence(opened.engine.collection, seed_text, text, document.title)
    return Shown(
        candidate,
        shared,
        shared.words[:WORDS],
        as_lines(document.metadata),
        len(document.text) - len(text),
        seed,
        number,
        unwrap(seed.text) if seed else "",
        0 if candidate.phase == "search" else len(group(opened, candidate.id)),
        *opened.engine.foreign.reading(replace(document, text=text[:READ])),
    )


def as_lines(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return metadata for display: the values of each field on one line."""
    return {name: line for name, value in metadata.items() if (line := ", ".join(filter_values(value)))}


def unwrap(text: str) -> str:
    """Return a text of the same length, without the hard line breaks of a wrapped file (newswire, e-mail).

    A line of more than 40 characters that does not end a sentence and continues in the next line counts as wrapped,
    but fewer than three such lines may be chance.
    """
    breaks = [match.start() for match in WRAPPED.finditer(text)]
    if len(breaks) < 3:
        return text
    characters = list(text)
    for position in breaks:
        characters[position] = " "
    return "".join(characters)


def seed_of(opened: Opened, id_: str) -> tuple[int, Seed | None]:
    """Return a seed's position, from 1, and the seed; 0 and None if the review has no seed with this id."""
    found = ((number, seed) for number, seed in enumerate(opened.review.seeds, start=1) if seed.id == id_)
    return next(found, (0, None))


def group(opened: Opened, id_: str) -> tuple[str, ...]:
    """Return the ids of the near duplicates of a document, excluding itself and the seeds."""
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


@dataclass(frozen=True, slots=True)
class SeedOffer:
    """The form's choices for a document found by search: the seeds to judge it for, and its judgements.

    `seeds`: ids and labels; `chosen` is the selected seed; if it is empty, the reviewer has to choose. `said`: the
    verdicts so far, each with its seed's label ("mixed" if reviewers differ). `seen`: the verdicts and seeds that the
    reader saw, which the form sends back. `is_open`: whether the document can be judged at all: seeds and documents
    outside the filter cannot.
    """

    seeds: tuple[tuple[str, str], ...]
    chosen: str
    said: tuple[tuple[str, str], ...]
    seen: tuple[str, ...]
    is_open: bool

    @property
    def pressed(self) -> str:
        """The current verdict, if there is one."""
        return self.said[0][0] if len(self.said) == 1 else ""


def offers(opened: Opened, ids: Sequence[str], reviewer: str, seed: str = "") -> dict[str, SeedOffer]:
    """Return the choices for documents found by search, by id; `seed`: the seed to judge for, if known."""
    review = opened.review
    labels = {s.id: _label(number, s) for number, s in enumerate(review.seeds, start=1)}
    states, first = _states(opened, reviewer), list(labels)[:LIKELIEST]
    topic = review.settings.unit == "topic"  # in a topic, a verdict counts for all seeds
    by_id = {}
    for id_ in ids:
        known = states.get(id_, {})
        likely = dict.fromkeys((seed, *known, *review.likeliest(id_, LIKELIEST), *first))
        allowed = [s for s in likely if s in labels and (s, id_) in review.population]
        seeds = tuple((s, labels[s]) for s in allowed[: 1 if topic else LIKELIEST])
        sure = seed in labels or len(labels) == 1 or topic
        by_id[id_] = SeedOffer(
            seeds,
            seeds[0][0] if seeds and sure else "",
            tuple((state, labels.get(s, "") if len(labels) > 1 else "") for s, (_, state) in known.items()),
            tuple(encode_seen(verdict, s) for s, (verdict, _) in known.items() if verdict != "skip"),
            bool(seeds) or (not labels and ("", id_) in review.population),
        )
    return by_id


def encode_seen(verdict: str, seed: str) -> str:
    """Return a form's encoding of the verdict shown on its page."""
    return f"{verdict} {seed}"


def decode_seen(opened: Opened, verdicts: Sequence[str], seed: str) -> str:
    """Return the verdict that a form's reader saw on a document, for this seed, or an empty string."""
    key = seed if opened.review.settings.unit == "pairs" else ""
    return next((text.split(" ")[0] for text in verdicts if text.partition(" ")[2] == key), "")


def verdicts(opened: Opened, reviewer: str) -> dict[str, str]:
    """Return the verdict on each document, "mixed" if reviewers, or seeds, differ."""
    states = {
        id_: {state for _, state in by_seed.values()} for id_, by_seed in _states(opened, reviewer).items()
    }
    return {id_: next(iter(state)) if len(state) == 1 else "mixed" for id_, state in states.items()}


def _label(number: int, seed: Seed) -> str:
    return f"{number}: {beginning(seed.title or seed.text, LABEL)}"


def _states(opened: Opened, reviewer: str) -> dict[str, dict[str, tuple[Verdict, str]]]:
    """Return, per document and seed ("" in a topic), the verdict that counts and the one to show (the same or "mixed").

    If two reviewers judge everything blind, only this reviewer's own verdicts.
    """
    settings = opened.review.settings
    by_document: dict[str, dict[str, tuple[Verdict, str]]] = {}
    for judgement in opened.ledger.judgements(reviewer if settings.double else None):
        by_seed = by_document.setdefault(judgement.id, {})
        seed = judgement.seed if settings.unit == "pairs" else ""
        _, state = by_seed.get(seed, ("skip", "skip"))
        if judgement.verdict != "skip" or seed not in by_seed:
            is_same = state in ("skip", judgement.verdict)
            by_seed[seed] = judgement.verdict, judgement.verdict if is_same else "mixed"
    return by_document
