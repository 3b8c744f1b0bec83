"""`watch`: match posts against seed texts as they arrive."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from indexes.hybrid import Mode
from indexes.interface import Document
from linker.base.errors import InputError
from linker.base.progress import Progress, bar, listening
from linker.cli.commands.given import Paths, opened
from linker.corpora import BadLine, Columns
from linker.corpora.records import Record
from linker.engine.engine import Engine
from linker.review.watching import Arrivals, Kept, Match, Matcher, Position
from linker.review.watching.arrivals import is_file
from linker.review.watching.kept import QUARANTINE
from linker.review.watching.matching import BATCH, Cut


@dataclass(frozen=True, slots=True)
class Watched:
    """Counts of a watch: posts read, those with a match, matches, seeds with one, and unusable lines.

    These are in the file `quarantine`, with the reasons.
    """

    posts: int
    matched: int
    matches: int
    seeds: int
    quarantined: int
    quarantine: Path


def watch(
    seeds: Paths | Engine,
    posts: str | Path | Iterable[Document],
    each: Callable[[Match], object] | None = None,
    *,
    threshold: float | None = None,
    precision: float | None = None,
    score: float | None = None,
    k: int = 10,
    mode: Mode | None = None,
    where: str | Sequence[str] | None = None,
    follow: bool = False,
    out: str | Path | None = None,
    resume: bool = False,
    quarantine: str | Path | None = None,
    encoder: str | None = None,
    columns: Columns | None = None,
    progress: Progress | None = None,
) -> Watched:
    """Match posts against an index of seed texts as they arrive, and call `each` with every match.

    `seeds` is an index, several that are searched as one, or an open Engine; seeds that are added or deleted meanwhile
    count from then on. `posts` are documents, or a file of JSON lines, a pipe or `-` (stdin). With `follow`, a file is
    read on as it grows, until the caller interrupts. A post matches a seed where P(link) is at least `threshold` (0.5
    where nothing is said), where it reaches what `precision` promises, or where the score is at least `score`; of each
    post's seeds, `k` are looked at. Matches are appended to the file `out`, and `resume` goes on after its last one.
    Raises InputError where a file cannot be read or written, or the index knows no P(link) and `score` is not given.
    """
    if precision is not None and (threshold is not None or mode is not None):
        raise InputError(
            "--precision sets its own threshold, for the index's own way to search: leave the others out"
        )
    source = Path(posts) if isinstance(posts, (str, Path)) else None
    refused = Path(quarantine) if quarantine else _beside(source, out)
    counts = _Counts()
    with (
        listening(progress),
        # Posts wait for seeds that cannot be searched; half of a hybrid search would match them otherwise.
        opened(seeds, encoder, "fail") as engine,
        Kept(Path(out) if out else None, refused, source if is_file(source) else None, resume=resume) as kept,
        bar(None, "watching", "posts") as shown,
    ):
        matcher = Matcher(engine, Cut(threshold, precision, score), k=k, mode=mode, where=where)
        for records, position in _arriving(posts, columns, follow, kept.position):
            read = [record for record in records if isinstance(record, Document)]
            matches = list(matcher.match(read))
            kept.add(matches, (record for record in records if isinstance(record, BadLine)), position)
            for match in matches:
                if each:
                    each(match)
            counts.add(len(read), matches)
            shown.update(len(records))
    return Watched(counts.posts, counts.matched, counts.matches, len(counts.seeds), kept.refused, refused)


class _Counts:
    def __init__(self) -> None:
        self.posts = self.matched = self.matches = 0
        self.seeds = set[str]()

    def add(self, posts: int, matches: Sequence[Match]) -> None:
        self.posts += posts
        self.matched += len({match.post.id for match in matches})
        self.matches += len(matches)
        self.seeds.update(match.seed.id for match in matches)


def _arriving(
    posts: str | Path | Iterable[Document], columns: Columns | None, follow: bool, start: Position | None
) -> Iterable[tuple[Sequence[Record], Position]]:
    if isinstance(posts, (str, Path)):
        return Arrivals(Path(posts), columns, follow=follow, start=start)
    documents = iter(posts)
    batches = iter(lambda: list(itertools.islice(documents, BATCH)), [])
    return ((batch, Position()) for batch in batches)


def _beside(source: Path | None, out: str | Path | None) -> Path:
    """Return where unusable lines go: beside the matches, the posts, or into the current folder."""
    place = Path(out) if out else source if is_file(source) else None
    return place.with_name(place.name + QUARANTINE) if place else Path("watch" + QUARANTINE)
