"""`watch`: match posts against seed texts as they arrive."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from indexes.interface import Document
from linker.base.errors import InputError
from linker.base.options import takes
from linker.base.progress import bar, listening
from linker.cli.commands.arguments import open_index
from linker.corpora import BadLine, Columns
from linker.corpora.dialects import kind_of
from linker.corpora.records import Record
from linker.review.options import WatchOptions
from linker.review.watching import Arrivals, Matcher, Output, Position, PostMatch
from linker.review.watching.arrivals import is_file
from linker.review.watching.matching import BATCH, Cut
from linker.review.watching.output import QUARANTINE


@dataclass(frozen=True, slots=True)
class Watched:
    """Counts of a watch: posts read, posts with a match, matches, seeds with a match, and unusable lines.

    Unusable lines are in the file `quarantine`, with the reasons.
    """

    posts: int
    matched: int
    matches: int
    seeds: int
    quarantined: int
    quarantine: Path


@takes(WatchOptions)
def watch(options: WatchOptions) -> Watched:
    """Match posts against an index of seed texts as they arrive, and call `each` with every match.

    `seeds` is an index, several searched as one, or an open Engine; seeds added or deleted meanwhile take effect from
    then on. `posts` are documents, or a file of JSON lines, a pipe or `-` (stdin). With `follow`, a file is read as
    it grows, until the caller interrupts. A post matches a seed if P(link) is at least `threshold` (default 0.5), if
    it reaches the threshold for `precision`, or if the score is at least `score`; for each post, the top `k` seeds
    are considered. Matches are appended to the file `out`, and `resume` continues after the last one. Raises
    InputError if a file cannot be read or written, or the index has no P(link) and `score` is not given.
    """
    o, each = options, options.each
    source = Path(o.posts) if isinstance(o.posts, (str, Path)) else None
    if source and kind_of(source.name) not in ("jsonl", "text", None):
        raise InputError(
            f"{source} is not a file of JSON lines: convert it, or match its rows once with `linker search --queries`"
        )
    quarantine = Path(o.quarantine) if o.quarantine else _beside(source, o.out)
    counts = _Counts()
    with (
        listening(o.progress),
        # "fail": posts wait until the seeds can be searched completely; half of a hybrid search would match wrongly.
        open_index(o.seeds, o.encoder, "fail") as engine,
        Output(
            Path(o.out) if o.out else None, quarantine, source if is_file(source) else None, resume=o.resume
        ) as output,
        bar(None, "watching", "posts") as meter,
    ):
        matcher = Matcher(engine, Cut(o.threshold, o.precision, o.score), k=o.k, mode=o.mode, where=o.where)
        for records, position in _arriving(o.posts, o.columns, o.follow, output.position):
            documents = [record for record in records if isinstance(record, Document)]
            matches = list(matcher.match(documents))
            output.add(matches, (record for record in records if isinstance(record, BadLine)), position)
            for match in matches:
                if each:
                    each(match)
            counts.add(len(documents), matches)
            meter.update(len(records))
    return Watched(
        counts.posts, counts.matched, counts.matches, len(counts.seeds), output.refused, quarantine
    )


class _Counts:
    def __init__(self) -> None:
        self.posts = self.matched = self.matches = 0
        self.seeds = set[str]()

    def add(self, posts: int, matches: Sequence[PostMatch]) -> None:
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
    """Return the path for unusable lines: next to the matches, next to the posts, or in the current folder."""
    place = Path(out) if out else source if is_file(source) else None
    return place.with_name(place.name + QUARANTINE) if place else Path("watch" + QUARANTINE)
