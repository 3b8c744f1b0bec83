"""What the parts of a review have in common: verdicts, judgements, candidates, orders, stopping rules, progress."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from linker.base.errors import InputError

Verdict = Literal["relevant", "not", "maybe", "skip"]
VERDICTS: tuple[Verdict, ...] = ("relevant", "not", "maybe", "skip")
# How a document was reached: it was next in the order, drawn at random for the audit, from all unread ones ("audit") or
# from those that come first in the order ("front"), found by a search outside the queue, drawn at random outside audits
# (controls, imported random screenings), or judged elsewhere and imported (prior knowledge). Two phases are not about a
# document that was read: "row" is about a seed as a whole (without an id: no match, or decide later), and "accepted" is
# a link that nobody has read, accepted at a guaranteed precision.
Phase = Literal["queue", "audit", "front", "search", "control", "prior", "row", "accepted"]
UNREAD: tuple[Phase, ...] = ("row", "accepted")
RANDOM: tuple[Phase, ...] = ("audit", "control")  # the phases whose documents are drawn from all unread ones
AUDITED: tuple[Phase, ...] = ("audit", "front")


@dataclass(frozen=True, slots=True)
class Seed:
    """A text to find links for; `document` is its id if it is a document of the index, else empty."""

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    document: str = ""

    @property
    def full_text(self) -> str:
        """Title and text, joined by a newline if there is a title."""
        return f"{self.title}\n{self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class Candidate:
    """A document that may be relevant to a seed.

    `rank` is its rank for that seed from 1, `score` determined the order, `probability` is P(link) if the index has a
    calibration.
    """

    seed: str
    id: str
    score: float
    rank: int = 0
    probability: float | None = None
    phase: Phase = "queue"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A reviewer's verdict on document `id` for `seed`, with its score at that time; `time` is UTC in ISO 8601."""

    seed: str
    id: str
    verdict: Verdict
    reviewer: str = ""
    note: str = ""
    tags: tuple[str, ...] = ()
    score: float | None = None
    probability: float | None = None
    model: str = ""  # fingerprint of the order that proposed the document
    phase: Phase = "queue"
    time: str = ""

    @property
    def relevant(self) -> bool:
        """Whether the document counts as found; with "maybe" it does not, and with "skip" not even as read."""
        return self.verdict == "relevant"


class JudgedMeanwhileError(InputError):
    """A document was judged, or judged differently, after the reviewer saw it; `judgement` is the current one."""

    def __init__(self, judgement: Judgement | None) -> None:
        self.judgement = judgement
        who = (
            f"{judgement.reviewer or 'somebody'} has judged it {judgement.verdict}"
            if judgement
            else "it was undone"
        )
        super().__init__(f"{who} meanwhile: nothing was stored; look at the document again")


class Order(Protocol):
    """Decides which document to read next. A judgement may change everything not handed out yet."""

    def next(self) -> Candidate | None:
        """Return the best candidate that was neither handed out nor judged, or None at the end."""

    def tell(self, judgement: Judgement) -> None:
        """Learn from a judgement, even of a document that this order never handed out."""


@dataclass(frozen=True, slots=True)
class Read:
    """A judgement as passed to a stopping rule, in reading order; in an audit, its document was drawn at random.

    `reached`: a relevant control, read when it was drawn, that the order has now reached by itself.
    """

    relevant: bool
    phase: Phase = "queue"
    reached: bool = False


@dataclass(frozen=True, slots=True)
class OrderCertificate:
    """The certificate of an audit that also draws from the top of the order; it holds under one assumption.

    `claim` states it in a sentence. `recall` has been reached, at the rule's confidence, if the `assumption` about the
    order holds; None if the random reads contradict it (`contradicted`).
    """

    claim: str
    recall: float | None
    assumption: str
    contradicted: bool


@dataclass(frozen=True, slots=True)
class StopState:
    """The state of a stopping rule.

    `estimated`: the target recall is reached by the rule's estimate, so the audit may begin. `certified`: a recall
    that was reached at the rule's confidence whatever the order was, 0 to 1, or None if nothing is certified.
    `reason` tells the reviewer why, in a sentence or two with numbers; linker's rules give a `Sentence` (see
    `linker.review.wording`), which can be translated, as can `Progress.price`. `stop`: the rule asks for no more reads,
    either because the audit is over as well, or because the rule (a number found, a number read) never claims anything.
    `left`: according to the random reads, at most this many relevant documents are unread, at the rule's confidence;
    None without an audit. `audit` says what the audit found. `due`: the rule asks for an audit, and for no more reads
    from the queue. `by_order`: the certificate that relies on the order, None before an audit has drawn from its top.
    """

    estimated: bool
    certified: float | None
    reason: str
    stop: bool = False
    left: int | None = None
    due: bool = False
    audit: str = ""
    by_order: OrderCertificate | None = None


@dataclass(frozen=True, slots=True)
class TotalEstimate:
    """How many documents are relevant in all, read and unread: `likely`, and a 90 % interval from `low` to `high`."""

    low: int
    likely: int
    high: int


@dataclass(frozen=True, slots=True)
class LanguageCount:
    """The documents of a review in one language: how many there are, were read, and were found to be relevant."""

    language: str
    documents: int
    read: int
    relevant: int


@dataclass(frozen=True, slots=True)
class Progress:
    """A review's progress: documents read and found, out of how many; the stopping rule's state; the cost of certainty.

    `curve` has the number found after each document that was read in this review; the `prior` documents that were
    imported count as read and found, but are not in it. `audited`: documents drawn at random, `front` of them from the
    top of the order; `audit_left`: documents still to be read in the audit under way. `price` says in a sentence what
    certainty would cost. If every seed has links of its own, all of these count pairs of `seeds` and `documents`; in a
    topic, `seeds` is 0. `ahead`: reads without a find until the rule considers the target reached, None if unknown.
    `total`: the estimated number of relevant documents in all, if the order learns.
    """

    read: int
    found: int
    maybe: int
    skipped: int
    population: int
    curve: Sequence[int]
    stop: StopState
    phase: Phase
    price: str
    prior: int = 0
    audited: int = 0
    seeds: int = 0
    documents: int = 0
    ahead: int | None = None
    total: TotalEstimate | None = None
    front: int = 0
    audit_left: int = 0
