"""Judge the pairs of a `linker link` run: pages in one language next to their proposed counterparts in another."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import orjson

from indexes.disk.writing import sync
from indexes.interface import Document
from linker.base.errors import InputError
from linker.base.files import read_bytes, write_atomically
from linker.base.lines import read_lines
from linker.corpora import BadLine, read_corpus
from linker.evaluation.reading.trec import read_run
from linker.review.interface import Candidate, JudgedMeanwhileError, Judgement, Verdict
from linker.review.ledger import Ledger
from linker.review.ownership import LINKS, PAIRS, SOURCES, TARGETS, UNFINISHED, clear
from linker.review.project import Project
from linker.review.reservations import Reservations

LEDGER = "links.sqlite"
MOST = 5  # maximum number of counterparts to judge per page

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ProposedLink:
    """A page, its proposed counterpart, the score of the run, and the rank among the page's counterparts."""

    source: str
    target: str
    score: float
    rank: int


class ProposedLinks:
    """The pairs of a run with both pages' texts; judgements are kept in a ledger of their own."""

    def __init__(self, folder: Path) -> None:
        """Open the pairs that `make` wrote. Raises InputError if they are damaged or missing."""
        self.pairs = _read(folder / PAIRS, ProposedLink)
        self.sources, self.targets = (
            {d.id: d for d in _read(folder / name, Document)} for name in (SOURCES, TARGETS)
        )
        self.ledger = Ledger(folder.with_name(LEDGER))
        self._open, self._lock = Reservations(lambda held: (held.seed, held.id)), threading.Lock()

    def next(self, reviewer: str, holder: str = "") -> tuple[int, ProposedLink] | None:
        """Return the likeliest pair that is not judged and that nobody else has open, with its position, or None.

        A `holder` (see `Reservations`) gets the same pair until it is judged. A page whose counterpart was found is
        not shown again; pairs that this reviewer skipped come last.
        """
        with self._lock:
            pairs, skipped = self._left(reviewer)
            while self._open.expired():
                pass
            held = self._open.get(holder)
            mine = next(
                (e for e in pairs if held and (e[1].source, e[1].target) == (held.seed, held.id)), None
            )
            free = [e for e in pairs if self._open.of((e[1].source, e[1].target)) is None]
            pair = mine or min(free, key=lambda e: (e[1].source, e[1].target) in skipped, default=None)
            if pair:
                self._open.put(holder, Candidate(pair[1].source, pair[1].target, pair[1].score))
            return pair

    def elsewhere(self, holder: str = "") -> int:
        """Return how many pairs other holders have open."""
        return self._open.others(holder)

    def _left(self, reviewer: str) -> tuple[list[tuple[int, ProposedLink]], set[tuple[str, str]]]:
        """Return the pairs to be judged, with their positions, and the pairs that this reviewer has skipped."""
        standing = self.ledger.judgements()
        read = {(j.seed, j.id) for j in standing if j.verdict != "skip"}
        linked = {j.seed for j in standing if j.relevant}
        skipped = {(j.seed, j.id) for j in standing if j.verdict == "skip" and j.reviewer == reviewer}
        left = [
            (number, pair)
            for number, pair in enumerate(self.pairs, start=1)
            if (pair.source, pair.target) not in read and pair.source not in linked
        ]
        return left, skipped

    def judge(self, pair: ProposedLink, verdict: Verdict, reviewer: str) -> None:
        """Store a verdict on a pair. Raises InputError if it is not in the run, or another reviewer has judged it."""
        if pair not in self.pairs:
            raise InputError(
                f"the run does not link {pair.source!r} with {pair.target!r}: load the page again"
            )
        with self._lock:
            for known in self.ledger.judgements():
                is_read = (known.seed, known.id) == (pair.source, pair.target) and known.verdict != "skip"
                if is_read and known.reviewer != reviewer:
                    raise JudgedMeanwhileError(known)
            self._open.release((pair.source, pair.target))
            self.ledger.add(Judgement(pair.source, pair.target, verdict, reviewer, score=pair.score))

    def counts(self) -> dict[str, int]:
        """Return the number of pairs with each verdict."""
        return dict(Counter({(j.seed, j.id): j.verdict for j in self.ledger.judgements()}.values()))


def folder_of(project: Project) -> Path:
    """Return the folder of a review's pairs, which may not exist."""
    return project.ledger.with_name(LINKS)


def make_of_pairs(project: Project, path: Path) -> None:
    """Store the pairs of a JSON lines file from `linker link --uncertain`, in the file's order, as `make` does.

    Raises InputError if the file cannot be read or a line is not a pair with its texts.
    """
    pairs: list[ProposedLink] = []
    first, second = dict[str, Document](), dict[str, Document]()
    for number, raw, _ in read_lines(path):
        try:
            fields = orjson.loads(raw)
            pair = ProposedLink(str(fields["seed"]), str(fields["id"]), float(fields["score"]), 1)
            first[pair.source] = Document(pair.source, fields["seed_text"], "", dict(fields["seed_metadata"]))
            second[pair.target] = Document(pair.target, fields["text"], "", dict(fields["metadata"]))
        except (KeyError, TypeError, ValueError) as e:
            raise InputError(
                f"{path}:{number}: not a pair with its texts ({e!r}): give a file of linker link --uncertain"
            ) from None
        pairs.append(pair)
    if not pairs:
        raise InputError(f"{path} contains no pair: there is nothing to judge")
    _store(project, pairs, (first, second))


def make(project: Project, run: Path, sources: Path, targets: Path) -> None:
    """Store a run with its pages for judging, replacing an earlier one; existing judgements stay.

    Raises InputError if a file cannot be read, or the run names a page in neither file.
    """
    first, second = (
        {d.id: d for d in read_corpus(path) if not isinstance(d, BadLine)} for path in (sources, targets)
    )
    _store(project, _ranked(run, first, second), (first, second))


def _store(
    project: Project, pairs: Sequence[ProposedLink], pages: tuple[Mapping[str, Document], ...]
) -> None:
    folder = folder_of(project)
    building = folder.with_name(f"{UNFINISHED}{LINKS}")
    try:
        clear(building)
        _check_ours(folder)
        building.mkdir(parents=True)
        wanted = {p.source for p in pairs}, {p.target for p in pairs}
        for name, known, ids in zip((SOURCES, TARGETS), pages, wanted, strict=True):
            lines = (_dumped(document) for id_, document in known.items() if id_ in ids)
            write_atomically(building / name, b"".join(lines))
        write_atomically(building / PAIRS, b"".join(orjson.dumps(p) + b"\n" for p in pairs))
        clear(folder)
        building.rename(folder)
        sync(folder.parent)
    except OSError as e:
        raise InputError(f"cannot store the run: {e.strerror}") from e


def _check_ours(folder: Path) -> None:
    """Raise InputError if the folder of pairs contains other files, as a user's folder of that name might."""
    if folder.is_dir() and any(folder.iterdir()):
        try:
            _read(folder / PAIRS, ProposedLink)
        except InputError:
            raise InputError(f"{folder} was not written by linker: move it elsewhere and try again") from None


def _ranked(run: Path, sources: dict[str, Document], targets: dict[str, Document]) -> list[ProposedLink]:
    """Return the best pairs of each page, sorted by score."""
    pairs = []
    for source, scores in read_run(run).items():
        best = sorted(scores.items(), key=lambda entry: (-entry[1], entry[0]))[:MOST]
        pairs += [
            ProposedLink(source, target, float(score), rank)
            for rank, (target, score) in enumerate(best, start=1)
        ]
    for pair in pairs:
        for id_, known, what in ((pair.source, sources, "first"), (pair.target, targets, "second")):
            if id_ not in known:
                raise InputError(
                    f"the run names {id_!r}, which is not in the {what} file of pages: choose another"
                )
    return sorted(pairs, key=lambda p: (p.rank > 1, -p.score, p.source, p.target))


def _dumped(document: Document) -> bytes:
    values = {
        "id": document.id,
        "title": document.title,
        "text": document.text,
        "metadata": document.metadata,
    }
    return orjson.dumps(values) + b"\n"


def _read(path: Path, kind: type[T]) -> list[T]:
    """Return the records of JSON lines. Raises InputError if they are damaged, or there is no file."""
    if not path.is_file():
        raise InputError("there is no run to judge yet: upload one")
    try:
        return [kind(**orjson.loads(line)) for line in read_bytes(path).splitlines()]
    except (orjson.JSONDecodeError, TypeError):
        raise InputError(f"{path} is damaged: upload the run again") from None
