"""The state of each row (matched, without a match, open), its judgements and candidates, and a table of decisions."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from linker.review.exporting.rows import Documents
from linker.review.interface import Judgement, Seed
from linker.review.rows.candidates import Match
from linker.review.session.together import COPY_OF

State = Literal["matched", "none", "open"]
STATES: tuple[State, ...] = ("matched", "none", "open")
COLUMNS = ("state", "match", "match_title", "match_text", "probability", "how", "reviewer", "time", "note")


@dataclass(slots=True)
class Row:
    """A seed with its candidates and their judgements; rows are counted from 1.

    `links`: the judgements that match it, in order, without those on near-duplicates, whose ids are in `copies`.
    `rejected`: documents that are not its match. `closed`: the judgement that it has no match. `later`: left for
    later.
    """

    number: int
    seed: Seed
    candidates: tuple[Match, ...] = ()
    links: dict[str, Judgement] = field(default_factory=dict)
    copies: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)
    closed: Judgement | None = None
    later: bool = False

    @property
    def state(self) -> State:
        """Its state. If it was judged to have a match and also to have none, the later judgement counts."""
        if self.links:
            return "matched"
        return "none" if self.closed else "open"

    @property
    def accepted(self) -> bool:
        """Whether all its matches were accepted unread."""
        return bool(self.links) and all(j.phase == "accepted" for j in self.links.values())

    @property
    def left(self) -> tuple[Match, ...]:
        """The candidates without a judgement, best first."""
        said = self.links.keys() | self.copies | self.rejected
        return tuple(match for match in self.candidates if match.id not in said)

    @property
    def best(self) -> Match | None:
        """Its match or, without one, the most probable candidate."""
        if self.links:
            id_, judgement = next(iter(self.links.items()))
            return Match(id_, self.chance(id_) or judgement.probability or 0.0)
        return next(iter(self.left), None)

    @property
    def probability(self) -> float:
        """P(link) of its match or best candidate; 0 if there is none."""
        best = self.best
        return best.probability if best else 0.0

    @property
    def fingerprint(self) -> str:
        """A value that changes with every judgement of the row."""
        return f"{self.state} {len(self.rejected)} {' '.join(self.links)}"

    def chance(self, id_: str) -> float | None:
        """Return P(link) of a document if it is a candidate, else None."""
        return next((match.probability for match in self.candidates if match.id == id_), None)

    def take(self, judgement: Judgement) -> None:
        """Process a judgement of this seed; pass judgements in order, because the last one counts."""
        id_, verdict = judgement.id, judgement.verdict
        self.later = verdict == "skip"
        if not id_ and verdict == "not":
            self.closed = judgement
            self.links.clear()
            self.copies.clear()
        if not id_ or verdict == "skip":
            return
        for known in (self.links, self.copies, self.rejected):
            if id_ in known:
                known.pop(id_) if isinstance(known, dict) else known.discard(id_)
        if verdict == "relevant":
            self.closed = None
            if any(tag.startswith(COPY_OF) for tag in judgement.tags):
                self.copies.add(id_)
            else:
                self.links[id_] = judgement
        elif verdict == "not":
            self.rejected.add(id_)


def states(
    seeds: Iterable[Seed], candidates: Mapping[str, tuple[Match, ...]], judgements: Iterable[Judgement]
) -> list[Row]:
    """Return the rows in the order of the seeds; `judgements` as `Ledger.judgements(rows=True)` returns them."""
    rows = {
        seed.id: Row(number, seed, candidates.get(seed.id, ())) for number, seed in enumerate(seeds, start=1)
    }
    for judgement in judgements:
        if judgement.seed in rows:
            rows[judgement.seed].take(judgement)
    return list(rows.values())


def counts(rows: Iterable[Row]) -> dict[State, int]:
    """Return the number of rows in each state."""
    found = Counter(row.state for row in rows)
    return {state: found[state] for state in STATES}


def known_links(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """Return the matches that were read by a person, as (seed, document)."""
    return [(row.seed.id, id_) for row in rows for id_, j in row.links.items() if j.phase != "accepted"]


def by_probability(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with the most probable first."""
    return sorted(rows, key=lambda row: (-row.probability, row.number))


def before(rows: Iterable[Row], row: Row) -> str:
    """Return the last of `rows`, by probability, before the place that `row` had before it was judged, or ""."""
    first = row.candidates[0].probability if row.candidates else 0.0
    ahead = [r.seed.id for r in by_probability(rows) if (-r.probability, r.number) < (-first, row.number)]
    return ahead[-1] if ahead else ""


def next_open(
    rows: Sequence[Row], after: str = "", busy: Collection[str] = (), first: Collection[str] = ()
) -> Row | None:
    """Return the open row after `after` in `rows`, else the first open one, or None if none is open.

    Rows that others have open (`busy`) are left out; those in `first` come first, those left for later last.
    """
    place = next((i + 1 for i, row in enumerate(rows) if row.seed.id == after), 0)
    ordered = [*rows[place:], *rows[:place]]
    free = [row for row in ordered if row.state == "open" and row.seed.id not in busy]
    ranked = sorted(free, key=lambda row: (row.later, row.seed.id not in first))
    return next(iter(ranked), None)


@dataclass(frozen=True, slots=True)
class Decided:
    """A row as it stands, with one of its matches or, if it has none, the judgement on it.

    `match` is the document's id. `how`: "read", or "accepted" (unread) at a level of probability.
    """

    row: Row
    state: State
    match: str = ""
    title: str = ""
    text: str = ""
    probability: float | None = None
    how: str = ""
    reviewer: str = ""
    time: str = ""
    note: str = ""

    def cells(self) -> dict[str, Any]:
        """Return the added columns, named as COLUMNS are."""
        values = (
            self.state, self.match, self.title, self.text, self.probability, self.how, self.reviewer, self.time,
            self.note,
        )  # fmt: skip
        return dict(zip(COLUMNS, values, strict=True))


def table(rows: Iterable[Row], documents: Documents | None = None) -> Iterator[Decided]:
    """Yield the rows in order, one for each match, and one for each row without a match or still open."""
    for row in rows:
        if row.closed:
            said = row.closed
            yield Decided(row, "none", how="read", reviewer=said.reviewer, time=said.time, note=said.note)
        elif not row.links:
            yield Decided(row, "open")
        for id_, said in row.links.items():
            known = documents.document(id_) if documents is not None and id_ in documents else None
            probability = row.chance(id_) if said.probability is None else said.probability
            how = "accepted" if said.phase == "accepted" else "read"
            yield Decided(
                row, "matched", id_, known.title if known else "", known.text if known else "", probability, how,
                said.reviewer, said.time, said.note,
            )  # fmt: skip
