"""The flow diagram of a review (PRISMA 2020): how many records were found, removed, screened, excluded, included.

Page et al., 2021, "The PRISMA 2020 statement", figure 1. Documents that nobody read because the order ranked them last
are "records marked as ineligible by automation tools".
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from linker.review.agreement import decided
from linker.review.interface import Judgement
from linker.review.session.together import COPY_OF, original

NO_REASON = "no reason given"
LEFT, RIGHT, WIDTH, LINE, PAD, GAP = 20, 380, 320, 18, 12, 36  # dimensions of the drawing, in pixels


@dataclass(frozen=True, slots=True)
class Flow:
    """The number of records at each step; `identified` = copies + unread + screened.

    `screened` = excluded + undecided + included. `reasons`: how many were excluded per verdict tag, with untagged
    ones under NO_REASON; a record with two tags counts in both. `known`: how many of the included ones are seeds.
    """

    identified: int
    copies: int
    unread: int
    screened: int
    excluded: int
    reasons: Mapping[str, int]
    undecided: int
    included: int
    known: int

    def boxes(self) -> tuple[tuple[Sequence[str], Sequence[str]], ...]:
        """Return, for each step, the lines of the box for records that continue and of the box for those removed."""
        removed = [
            "Records removed before screening:",
            f"  duplicates (n = {self.copies:,})",
            f"  marked as ineligible by automation tools (n = {self.unread:,})",
        ]
        excluded = [f"Records excluded (n = {self.excluded:,})"]
        if set(self.reasons) - {NO_REASON}:
            excluded += [f"  {reason} (n = {count:,})" for reason, count in self.reasons.items()]
        included = [f"Studies included in the review (n = {self.included:,})"]
        if self.known:
            included.append(f"  known beforehand (n = {self.known:,})")
        undecided = [f"Reports awaiting a decision (n = {self.undecided:,})"] if self.undecided else []
        return (
            ([f"Records identified (n = {self.identified:,})"], removed),
            ([f"Records screened (n = {self.screened:,})"], excluded),
            (included, undecided),
        )


def flow_of(
    judgements: Iterable[Judgement], seeds: Collection[str] = (), documents: Collection[str] | None = None
) -> Flow:
    """Return the flow of a review from its ledger.

    seeds: ids of documents that are seeds, and relevant. documents: the ids of the index; without them, only judged
    documents are known, and none is unread.
    """
    verdicts = [j for j in judgements if j.verdict != "skip" and (documents is None or j.id in documents)]
    known = {id_ for id_ in seeds if documents is None or id_ in documents}
    decisions: dict[str, Judgement | None] = {j.id: None for j in verdicts}
    for judgement in decided(verdicts):
        before = decisions[judgement.id]
        if before is None or not before.relevant:
            decisions[judgement.id] = judgement
    copies = {id_ for id_, j in decisions.items() if j and original(j) != id_}
    read = {id_: j for id_, j in decisions.items() if id_ not in copies | known}
    excluded = [j for j in read.values() if j and j.verdict == "not"]
    included = sum(bool(j and j.relevant) for j in read.values()) + len(known)
    screened = len(read) + len(known)
    identified = len(documents) if documents is not None else screened + len(copies)
    return Flow(
        identified, len(copies), identified - screened - len(copies), screened, len(excluded), _reasons(excluded),
        screened - len(excluded) - included, included, len(known),
    )  # fmt: skip


def _reasons(excluded: Iterable[Judgement]) -> dict[str, int]:
    """Return how often each tag was given, the most frequent first, and finally how many had none."""
    tags = [[tag for tag in j.tags if not tag.startswith(COPY_OF)] for j in excluded]
    counts = dict(Counter(tag for given in tags for tag in dict.fromkeys(given)).most_common())
    without = sum(not given for given in tags)
    return counts | ({NO_REASON: without} if without else {})


def as_text(flow: Flow) -> str:
    """Return the flow as lines of text, each step below the one before it."""
    lines = [line for main, beside in flow.boxes() for line in (*main, *(f"  {text}" for text in beside))]
    return "\n".join(lines) + "\n"


def as_svg(flow: Flow) -> str:
    """Return the flow diagram as SVG: black on white, without scripts or fonts of its own."""
    top, parts, before = 20, list[str](), 0
    for main, beside in flow.boxes():
        height = 2 * PAD + LINE * max(len(main), len(beside), 2)
        if before:
            parts.append(_arrow(LEFT + WIDTH // 2, before, LEFT + WIDTH // 2, top))
        parts += _box(LEFT, top, height, main)
        if beside:
            middle = top + height // 2
            parts += [_arrow(LEFT + WIDTH, middle, RIGHT, middle), *_box(RIGHT, top, height, beside)]
        before, top = top + height, top + height + GAP
    size = f'width="{RIGHT + WIDTH + 20}" height="{before + 20}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">',
            '<defs><marker id="end" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
            '<path d="M0,0 L9,4 L0,8 z"/></marker></defs>',
            '<rect width="100%" height="100%" fill="white"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _box(x: int, y: int, height: int, lines: Sequence[str]) -> Iterator[str]:
    yield f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{height}" fill="none" stroke="black"/>'
    for number, line in enumerate(lines, start=1):
        indent = 16 if line.startswith(" ") else 0
        yield f'<text x="{x + PAD + indent}" y="{y + PAD // 2 + LINE * number}">{escape(line.strip())}</text>'


def _arrow(x: int, y: int, to_x: int, to_y: int) -> str:
    return f'<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}" stroke="black" marker-end="url(#end)"/>'
