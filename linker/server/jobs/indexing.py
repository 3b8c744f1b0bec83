"""The job `index`: build a review's index and seeds from uploaded files, completely or not at all."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import orjson

from indexes.disk.writing import sync
from indexes.dropping import discard
from indexes.interface import Document
from indexes.store import manifest as manifests
from linker.base.files import write_atomically
from linker.base.progress import Progress, listening
from linker.corpora import BadLine, Columns, read_corpus
from linker.corpora.reading import read_lines_of
from linker.corpora.records import without_repeats
from linker.encoders.opened import open_encoder
from linker.engine.building import BuildOptions, add, build
from linker.review.interface import Seed
from linker.review.ledger import Ledger
from linker.review.ownership import UNFINISHED
from linker.review.project import Project

# name of the file with the articles that could not be read, next to the uploads
SEEDS_QUARANTINE = "seeds.quarantine.jsonl"


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """An uploaded file, and how to read its columns."""

    path: Path
    columns: Columns

    def to_json(self) -> dict[str, Any]:
        """Return this file as JSON values."""
        return {"path": str(self.path), "columns": asdict(self.columns)}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the file that `to_json` described."""
        columns = dict(values["columns"])
        names = tuple((field, name) for field, name in columns.pop("names"))
        return cls(Path(values["path"]), Columns(**columns, names=names))


def specification(
    project: Project,
    posts: Sequence[UploadedFile],
    articles: Sequence[UploadedFile] = (),
    *,
    encoder: str = "none",
    language: str = "english",
) -> dict[str, Any]:
    """Return the specification of a job: build an index of `posts` or add them to it, and read `articles` as seeds."""
    return {
        "folder": str(project.own_folder),
        "index": str(project.index),
        "ledger": str(project.ledger),
        "posts": [s.to_json() for s in posts],
        "articles": [s.to_json() for s in articles],
        "encoder": encoder,
        "language": language,
        "add": project.ready,
    }


def unfinished(project: Project) -> list[Path]:
    """Return the folders that an indexing job of this review leaves behind if it is cancelled or killed."""
    return [project.own_folder / f"{UNFINISHED}index"]


def run(spec: Mapping[str, Any], tell: Progress) -> dict[str, Any]:
    """Carry out a `specification`; the index gets its name in one step, after everything else.

    Returns the numbers of documents, quarantined records and seeds. Raises InputError or IndexesError.
    """
    posts = [UploadedFile.of(s) for s in spec["posts"]]
    articles = [UploadedFile.of(s) for s in spec["articles"]]
    seeds, bad = read_seeds(articles)
    index, building = Path(spec["index"]), Path(spec["folder"]) / f"{UNFINISHED}index"
    discard(building)  # left by a job that was killed with its server
    counts = {"documents": 0, "quarantined": 0}
    if posts:
        options = BuildOptions(encoder=spec["encoder"], language=spec["language"])
        total = sum(1 for source in posts for _ in _counted(source, tell))
        with listening(lambda what, done, _: tell(what, done, total)):
            counts = _add(posts, index, counts) if spec["add"] else _build(posts, building, options)
    if seeds:
        tell("seeds", 0, len(seeds))
        with Ledger(spec["ledger"]) as ledger:
            ledger.put_seeds(seeds)
    if bad:
        lines = b"".join(orjson.dumps(line.to_json()) + b"\n" for line in bad)
        write_atomically(Path(spec["folder"]) / SEEDS_QUARANTINE, lines)
    if posts and not spec["add"]:
        building.rename(index)
        sync(index.parent)
    return counts | {"seeds": len(seeds), "bad_seeds": len(bad)}


def read_seeds(sources: Sequence[UploadedFile]) -> tuple[list[Seed], list[BadLine]]:
    """Return the seeds in files, and the unusable records, repeated ids included. Raises InputError."""
    ids = set[str]()
    files = (without_repeats(s.path, read_lines_of(s.path, s.columns), ids) for s in sources)
    records = list(itertools.chain.from_iterable(files))
    seeds = [Seed(r.id, r.text, r.title, r.metadata) for r in records if isinstance(r, Document)]
    return seeds, [record for record in records if isinstance(record, BadLine)]


def _counted(source: UploadedFile, tell: Progress) -> Iterator[Document | BadLine]:
    for number, record in enumerate(read_corpus(source.path, source.columns), start=1):
        tell("reading", number, None)
        yield record


def _build(posts: Sequence[UploadedFile], out: Path, options: BuildOptions) -> dict[str, int]:
    """Build an index of the first file and add the others, each with its own columns."""
    first, *others = posts
    report = build([first.path], out, dataclasses.replace(options, columns=first.columns))
    counts = {"documents": report.documents, "quarantined": report.quarantined}
    return _add(others, out, counts) if others else counts


def _add(posts: Sequence[UploadedFile], index: Path, counts: Mapping[str, int]) -> dict[str, int]:
    """Add files to a finished index, each in one commit; return the counts including theirs."""
    record = manifests.load(index).encoder
    encoder = open_encoder(index, record) if record else None
    documents, quarantined = counts["documents"], counts["quarantined"]
    for source in posts:
        report = add([source.path], index, encoder, BuildOptions(columns=source.columns))
        documents, quarantined = report.documents, quarantined + report.quarantined
    return {"documents": documents, "quarantined": quarantined}
