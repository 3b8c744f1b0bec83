"""The decisions on each row, as records and as rows of one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from linker.review.exporting.rows import Documents
from linker.review.rows.states import Row, State

COLUMNS = ("state", "match", "match_title", "match_text", "probability", "how", "reviewer", "time", "note")


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
    """Yield the rows in their order, one for each match, and one for each row without a match or still open."""
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
