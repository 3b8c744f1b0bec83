"""The content of the page of rows: the filtered list, one row with its candidates, and the links to accept."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import Query

from linker.engine.folding import fold
from linker.review.interface import Candidate, Judgement
from linker.review.rows.accepting import LEVEL, Check, Offer, offer
from linker.review.rows.candidates import Match, Matches, load, stamp
from linker.review.rows.states import Decided, Row, State, by_probability, known_links, states, table
from linker.server.page.judging import LABEL, Shown, beginning, document_view, group
from linker.server.page.rendering import message
from linker.server.shelf import Opened

PAGE = 50  # rows per page of the list
# bounds on the probability of a row's best candidate, by their name in URLs
BANDS: dict[str, tuple[float, float]] = {
    "95": (0.95, 1.01), "80": (0.8, 0.95), "50": (0.5, 0.8), "0": (0.0, 0.5)
}  # fmt: skip
STATE_NAMES: dict[State, str] = {
    "matched": message("Matched"), "none": message("No match"), "open": message("Open")
}  # fmt: skip

Wanted = Literal["", "matched", "none", "open"]
Text = Annotated[str, Query(max_length=2000)]


@dataclass(frozen=True, slots=True)
class RowsView:
    """The reader's choices: the rows' state, band of probability and order, and the level of links to accept."""

    state: str = ""
    band: str = ""
    order: str = ""
    level: float = LEVEL

    def query(self, **more: object) -> str:
        """Return the choices as a URL's query string; values in `more` take precedence."""
        values = dataclasses.asdict(self) | more
        plain = {name: value for name, value in values.items() if value not in ("", None, LEVEL)}
        return urlencode(plain)

    def select(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows that match these choices, in the chosen order."""
        low, high = BANDS.get(self.band, (-1.0, 2.0))
        found = [row for row in rows if self.state in ("", row.state) and low <= row.probability < high]
        return found if self.order == "file" else by_probability(found)


def view_of(
    state: Wanted = "", band: Text = "", order: Text = "", level: Annotated[float, Query()] = LEVEL
) -> RowsView:
    """Return the choices in a request's query; an unknown band or order is ignored."""
    return RowsView(state, band if band in BANDS else "", "file" if order == "file" else "", level)


@dataclass(frozen=True, slots=True)
class ShownCandidate:
    """A candidate as its row shows it; `copies`: the number of other candidates that are near-duplicates of it."""

    match: Match
    title: str
    lead: str
    copies: int
    said: str


def is_rows(opened: Opened) -> bool:
    """Return whether the review seeks a match for each row and is not in an audit or a control sample at the moment."""
    review = opened.review
    return review.settings.unit == "pairs" and bool(review.seeds) and review.phase == "queue"


def matches_of(opened: Opened) -> Matches | None:
    """Return the candidates from the last job, or None before the first. Raises InputError."""
    return opened.read_once("matches", opened.project.matches, load)


def is_current(opened: Opened, matches: Matches) -> bool:
    """Return whether rows, filter and documents are still those for which the candidates were found."""
    review = opened.review
    generation = opened.engine.collection.manifest.generation
    made_of = (review.seeds, review.settings.where, generation)
    return matches.stamp == opened.once("stamp", made_of, lambda: stamp(*made_of))


def rows_of(opened: Opened, reviewer: str = "") -> list[Row]:
    """Return the current state of all rows; if two reviewers judge everything blind, as `reviewer` sees them."""
    matches = matches_of(opened)
    own = reviewer if opened.review.settings.double else None
    judgements = opened.ledger.judgements(own, rows=True)
    made_of = (matches, opened.review.seeds, judgements)
    return opened.once(
        "rows", made_of, lambda: states(opened.review.seeds, matches.rows if matches else {}, judgements)
    )


def results(opened: Opened) -> list[Decided]:
    """Return the decisions on each row, with the documents' texts, for a table."""
    return list(table(rows_of(opened), opened.engine))


def check_of(opened: Opened) -> Check | None:
    """Return the most recent check of rows to accept, or None."""
    return Check.of(opened.ledger.settings.get("check"))


def offer_of(opened: Opened, rows: Sequence[Row], level: float) -> Offer | None:
    """Return the links that can be accepted in bulk at a level, or None if no candidates have been found yet.

    Raises InputError for an unknown level.
    """
    matches = matches_of(opened)
    return offer(rows, matches, level, check_of(opened)) if matches else None


def learnable(opened: Opened, rows: Sequence[Row]) -> int:
    """Return the number of matched rows to learn from; 0 if none are new, or there are too few."""
    from linker.scoring.probability.deciding import FEWEST

    matches = matches_of(opened)
    known = len({seed for seed, _ in known_links(rows)})
    return known if matches and not matches.held and known >= FEWEST and known > matches.known else 0


def candidate(row: Row, id_: str) -> Candidate:
    """Return a document as the row's candidate, with its rank and probability from the list."""
    place = next((i for i, match in enumerate(row.candidates, start=1) if match.id == id_), 0)
    chance = row.chance(id_)
    return Candidate(row.seed.id, id_, chance or 0.0, place, chance)


def current(row: Row, id_: str = "") -> str:
    """Return the id of the document to show: `id_`, the row's match, or its likeliest remaining candidate."""
    if id_:
        return id_
    best = row.best or next(iter(row.candidates), None)
    return best.id if best else ""


def options(opened: Opened, row: Row, ids: Sequence[str] = ()) -> list[ShownCandidate]:
    """Return the row's candidates and the documents `ids` found by search, with near-duplicates folded into one."""
    candidates = {match.id: match for match in row.candidates}
    candidates |= {i: Match(i, 0.0) for i in (*ids, *row.links) if i not in candidates}
    present = opened.engine.collection.present(list(candidates))
    matches = [match for id_, match in candidates.items() if id_ in present]
    documents = [opened.engine.document(match.id) for match in matches]
    entries = []
    for part in fold([document.full_text for document in documents]):
        match, document = matches[part.leader], documents[part.leader]
        title = beginning(document.title or document.text, 200)
        lead = beginning(document.text, 200) if document.title else ""
        entries.append(ShownCandidate(match, title, lead, len(part.copies), _verdict_of(row, match.id)))
    return entries


def _verdict_of(row: Row, id_: str) -> str:
    if id_ in row.links or id_ in row.copies:
        return "accepted" if id_ in row.links and row.links[id_].phase == "accepted" else "match"
    return "not" if id_ in row.rejected else ""


def open_document(opened: Opened, row: Row, id_: str) -> Shown | None:
    """Return the page's view of the open document, with the number of its near-duplicates."""
    if not id_ or id_ not in opened.engine:
        return None
    found = document_view(opened, candidate(row, id_))
    return dataclasses.replace(found, copies=len(group(opened, id_)))


def label(row: Row) -> str:
    """Return the beginning of a row's text, on one line."""
    return beginning(row.seed.title or row.seed.text, 2 * LABEL)


def batches(rows: Sequence[Row]) -> list[tuple[Judgement, int]]:
    """Return the bulk acceptances in force, latest first: a judgement from each, and the number of its links."""
    found: dict[tuple[str, str], list[Judgement]] = {}
    for row in rows:
        for judgement in row.links.values():
            if judgement.phase == "accepted":
                found.setdefault((judgement.time, judgement.reviewer), []).append(judgement)
    return [(of[0], len(of)) for _, of in sorted(found.items(), reverse=True)]


def window(listed: Sequence[Row], chosen: str, start: int | None) -> tuple[int, Sequence[Row]]:
    """Return the start of a page of the list, and its rows: the requested page, or the chosen row's."""
    if start is None:
        start = next((i for i, row in enumerate(listed) if row.seed.id == chosen), 0)
    start = min(max(0, start), max(0, len(listed) - 1)) // PAGE * PAGE
    return start, listed[start : start + PAGE]


def find_row(rows: Sequence[Row], to: str) -> str:
    """Return the seed id of the row with this number or these words, or an empty string."""
    words = " ".join(to.split()).casefold()
    if words.isdecimal() and 0 < int(words[:9]) <= len(rows):
        return rows[int(words) - 1].seed.id
    ids = (row.seed.id for row in rows if words and words in " ".join(row.seed.full_text.split()).casefold())
    return next(ids, "")


def as_values(row: Row) -> dict[str, Any]:
    """Return a row's values for the list."""
    return {
        "id": row.seed.id, "number": row.number, "state": row.state, "label": label(row), "later": row.later,
        "chance": row.probability if row.best else None, "accepted": row.accepted,
    }  # fmt: skip
