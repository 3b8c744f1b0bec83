"""The content of the group pages: the current groups, sorted or on a timeline, and the samples of pairs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal
from urllib.parse import urlencode

from starlette.exceptions import HTTPException

from indexes.interface import Document
from linker.engine.evidence import evidence, query_terms
from linker.review.exporting.rows import Cell
from linker.review.grouped import Grouped, Item, Story, edited, is_edit, load
from linker.review.interface import Judgement
from linker.review.ledger import Ledger
from linker.scoring.groups.asking import Stratum, passes, recall, sample
from linker.server.page.judging import beginning
from linker.server.page.rendering import message
from linker.server.shelf import Opened

PAGE = 50  # maximum number of groups, or of documents of a group, on a page
LEAD = 280  # characters shown of a document in a group
OFFERED = 300  # groups offered as targets for moving a document
WIDTH = 1000  # width of a timeline, in its own units
LEVELS = (0.8, 0.9, 0.95)
SAMPLE, RECALL = "sample", "missed"  # names of settings on the pairs for the precision and the recall
COLUMNS = {
    "group": message("group"),
    "title": message("title of the group"),
    "size": message("documents in the group"),
    "probability": message("probability"),
    "copy": message("near copy of"),
}

Order = Literal["", "largest"]
Look = Literal["", "timeline"]
# what judged pairs are for: to certify the groups' precision (""), or to estimate their recall ("missed")
What = Literal["", "missed"]


@dataclass(frozen=True, slots=True)
class View:
    """The reader's choices: the order of the groups, list or timeline, and the first group shown."""

    order: Order = ""
    look: Look = ""
    start: int = 0

    def query(self, **more: object) -> str:
        """Return the choices as a URL's query string; values in `more` take precedence."""
        values: Mapping[str, object] = {"order": self.order, "look": self.look, "start": self.start} | more
        return urlencode({name: value for name, value in values.items() if value})


@dataclass(frozen=True, slots=True)
class EditedStories:
    """The job's original groups (`made`), all groups with people's edits applied (`every`), and those of two documents
    or more, newest first (`listed`)."""

    made: Grouped
    listed: tuple[Story, ...]
    every: tuple[Story, ...]

    def get(self, number: int) -> Story | None:
        """Return the group with this number, or None."""
        return next((story for story in self.every if story.number == number), None)

    def ordered(self, order: Order) -> Sequence[Story]:
        """Return the listed groups in the given order."""
        if order == "largest":
            return sorted(self.listed, key=lambda story: -len(story.items))
        return self.listed


def ledger_of(opened: Opened) -> Ledger:
    """Return the ledger of people's judgements on groups."""
    path = opened.project.groups_ledger
    return opened.once("groups ledger", path, lambda: Ledger(path))


def stories_of(opened: Opened) -> EditedStories | None:
    """Return the current groups, or None before the first job. Raises InputError if their file is damaged."""
    made = opened.read_once("groups", opened.project.groups, load)
    if made is None:
        return None
    edits = tuple(filter(is_edit, ledger_of(opened).judgements()))

    def compute() -> EditedStories:
        every = edited(made.stories, edits)
        listed = sorted(
            (s for s in every if len(s.items) > 1), key=lambda s: (s.dates[1], len(s.items)), reverse=True
        )
        return EditedStories(made, tuple(listed), tuple(every))

    return opened.once("stories", (made.stamp, edits), compute)


def needed(opened: Opened) -> EditedStories:
    """Return the current groups; before the first job, raise HTTPException (404)."""
    found = stories_of(opened)
    if found is None:
        raise HTTPException(404)
    return found


def last_edit(opened: Opened, reviewer: str) -> Judgement | None:
    """Return this reviewer's last edit of a group that has not been undone, or None."""
    own = [j for j in ledger_of(opened).judgements(reviewer) if is_edit(j)]
    return own[-1] if own else None


def edited_ids(opened: Opened) -> list[str]:
    """Return the ids of documents in edits of groups: the next job keeps these documents even as groups of one."""
    edits = filter(is_edit, ledger_of(opened).judgements())
    return sorted({id_ for j in edits for id_ in (j.seed, j.id, *j.tags[1:])})


def title_of(opened: Opened, story: Story) -> str:
    """Return the title of a group: its representative's title or the beginning of its text."""
    if story.title:
        return story.title
    document = _document(opened, story.representative)
    return beginning(document.title or document.text, 100) or story.representative


def as_row(opened: Opened, story: Story) -> dict[str, Any]:
    """Return a group's values for the list."""
    return {
        "number": story.number, "title": title_of(opened, story), "size": len(story.items), "dates": story.dates,
        "languages": story.languages[:4], "sources": story.sources[:3], "more": max(0, len(story.sources) - 3),
        "probability": story.probability, "words": story.words, "changed": story.probability is None,
    }  # fmt: skip


def members(opened: Opened, story: Story, items: Iterable[Item]) -> list[dict[str, Any]]:
    """Return some of a group's documents for its page, each with its passage about the story.

    The passage is found by comparing the document with the group's representative or, if the document is the
    representative, with the first other text of the group.
    """
    stands = story.representative
    texts = (item.id for item in story.items if item.near_copy_of is None and item.id != stands)
    index = opened.engine.collection
    like = {
        id_: query_terms(index, _document(opened, id_).full_text) for id_ in (stands, next(texts, stands))
    }
    entries = []
    for item in items:
        document = _document(opened, item.id)
        by = [*like.values()][-1] if item.id == stands else like[stands]
        shown = evidence(index, by, document.text, document.title)
        entries.append({"item": item, "evidence": shown.excerpt(LEAD)})
    return entries


def _document(opened: Opened, id_: str) -> Document:
    """Return a document; an empty one if it has been deleted since."""
    return opened.engine.document(id_) if id_ in opened.engine else Document(id_, "")


def timeline(stories: Sequence[Story]) -> dict[str, Any]:
    """Return the positions of groups' documents between the first and last day, 0 to WIDTH, and these days."""
    days = [date.fromisoformat(item.date).toordinal() for s in stories for item in s.items if item.date]
    if not days:
        return {"days": (), "dots": {}}
    first, span = min(days), max(1, max(days) - min(days))
    dots = {
        story.number: sorted(
            {
                round(10 + (WIDTH - 20) * (date.fromisoformat(item.date).toordinal() - first) / span)
                for item in story.items
                if item.date
            }
        )
        for story in stories
    }
    marks = (first, first + span // 2, first + span) if span > 2 else (first, first + span)
    return {"days": tuple(date.fromordinal(day).isoformat() for day in marks), "dots": dots}


@dataclass(frozen=True, slots=True)
class AskedPairs:
    """Pairs for people to judge; `answers`: whether each judged pair belongs together."""

    pairs: tuple[tuple[str, str], ...]
    answers: Mapping[tuple[str, str], bool]

    @property
    def judged(self) -> int:
        """The number of pairs judged."""
        return len(self.answers)

    @property
    def right(self) -> int:
        """The number of judged pairs that belong together."""
        return sum(self.answers.values())

    @property
    def done(self) -> bool:
        """Whether all pairs are judged; only then may they be tested, and only once."""
        return self.judged == len(self.pairs)

    def following(self, skipped: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
        """Return the pair to judge now (skipped pairs come last), or None."""
        left = [pair for pair in self.pairs if pair not in self.answers]
        late = set(skipped)
        return min(left, key=lambda pair: pair in late, default=None)


@dataclass(frozen=True, slots=True)
class PairSample(AskedPairs):
    """A sample of the `of` pairs within groups of probability `threshold` or more, to certify a precision.

    `number`: how many samples have been drawn for these groups, this one included; they share one error probability.
    """

    precision: float
    number: int
    threshold: float
    of: int

    @property
    def certified(self) -> bool:
        """Whether the groups reach the precision, with 95 % confidence."""
        return self.done and passes(self.judged, self.right, self.of, self.precision, self.number)


@dataclass(frozen=True, slots=True)
class Missed(AskedPairs):
    """The sample that estimates the recall: the share of pairs about the same story that are within groups."""

    strata: tuple[Stratum, ...]

    @property
    def recall(self) -> tuple[float, float, float] | None:
        """The estimate and the ends of its 95 % interval, None until all pairs are judged."""
        if not self.done:
            return None
        right = [sum(self.answers[pair] for pair in stratum.pairs) for stratum in self.strata]
        return recall([(s.of, len(s.pairs), r) for s, r in zip(self.strata, right, strict=True)])


def check_of(opened: Opened, stories: EditedStories) -> PairSample | None:
    """Return the sample for the precision, or None if none has been drawn since the groups were computed."""
    values = ledger_of(opened).settings.get(SAMPLE)
    if not isinstance(values, Mapping) or values.get("stamp") != stories.made.stamp:
        return None
    pairs = tuple((str(a), str(b)) for a, b in values["pairs"])
    about = float(values["precision"]), int(values["number"]), float(values["threshold"]), int(values["of"])
    return PairSample(pairs, _answers(opened, pairs), *about)


def missed_of(opened: Opened, stories: EditedStories) -> Missed | None:
    """Return the sample for the recall, or None if nobody has requested it since the groups were computed."""
    if ledger_of(opened).settings.get(RECALL) != stories.made.stamp:
        return None
    pairs = tuple(pair for stratum in stories.made.strata for pair in stratum.pairs)
    return Missed(pairs, _answers(opened, pairs), stories.made.strata)


def _answers(opened: Opened, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], bool]:
    wanted = frozenset(pairs)
    return {
        (j.seed, j.id): j.relevant
        for j in ledger_of(opened).judgements()
        if not is_edit(j) and j.verdict != "skip" and (j.seed, j.id) in wanted
    }


def draw(opened: Opened, stories: EditedStories, precision: float) -> bool:
    """Draw and store pairs within the job's groups, without copies; return False if none could certify `precision`."""
    before = check_of(opened, stories)
    number = before.number + 1 if before else 1
    groups = [
        (story.probability, [item.id for item in story.items if item.near_copy_of is None])
        for story in stories.made.stories
        if story.probability is not None
    ]
    drawn = sample(groups, precision, number)
    if drawn is None:
        return False
    values = {"stamp": stories.made.stamp, "precision": precision, "number": number}
    values |= {"pairs": drawn.pairs, "threshold": drawn.threshold, "of": drawn.of}
    ledger_of(opened).set(SAMPLE, values)
    return True


def draw_missed(opened: Opened, stories: EditedStories) -> None:
    """Request verdicts on the pairs that estimate the recall."""
    ledger_of(opened).set(RECALL, stories.made.stamp)


def cells_of(opened: Opened, stories: EditedStories) -> dict[str, Sequence[Cell]]:
    """Return the cells of COLUMNS for each document that is in a group."""
    return {
        item.id: (story.number, title, len(story.items), item.probability, item.near_copy_of)
        for story in stories.listed
        for title in (title_of(opened, story),)
        for item in story.items
    }
