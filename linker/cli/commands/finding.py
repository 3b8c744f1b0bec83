"""`find`: documents for seed texts, best first, until enough relevant ones have been judged."""

import contextlib
import dataclasses
import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from linker.base.errors import InputError
from linker.base.files import real
from linker.base.lines import read_lines
from linker.base.logs import logger
from linker.base.options import takes
from linker.base.progress import Progress
from linker.cli.commands.arguments import open_index
from linker.corpora import Columns
from linker.corpora.dialects import kind_of
from linker.corpora.reading import usable_queries
from linker.corpora.records import report_skipped
from linker.crosslingual.pages.pages import read_documents
from linker.engine.engine import Engine
from linker.evaluation.formats import load_qrels
from linker.review.exporting import check_suffix, export
from linker.review.importing.judgements import quarantine
from linker.review.interface import Candidate, Seed
from linker.review.ledger import Ledger
from linker.review.options import FindOptions, Question, Seeds
from linker.review.session import Answer, FindLimits, FindReport, Review
from linker.review.session import find as read
from linker.review.settings import Settings

SUFFIX = ".review.sqlite"


Judge = Callable[[Question], Answer]


@takes(FindOptions)
def find(options: FindOptions) -> FindReport:
    """Find documents for seed texts, best first, and learn from each answer of `judge` what to show next.

    `directory` is an index, several searched as one, or an open Engine; `seeds` a file, texts, or texts by id.
    `judge` returns "relevant", "not", "maybe", "skip", "undo" or "quit". Instead, `judgements`, a file or a mapping,
    can give the answers: documents without one are "not". All seeds describe one story; with `static`, each has its own
    links. The search ends when the stopping rule estimates that the `target` recall is reached, or after `until`
    relevant documents or `max_read` judgements. The judgements are kept in the file `ledger` (by default next to a seed
    file; nowhere for texts), and a second call continues. `columns` says how to read a seed file. Raises
    InputError for options that contradict each other, and if a file cannot be read.
    """
    o, judge, static = options, options.judge, options.static
    if (judge is None) == (o.judgements is None):
        raise InputError("give either a judge or `judgements`")
    if o.out is not None:
        check_suffix(Path(o.out))
    settings = {
        "unit": "pairs" if static else "topic", "order": o.order or (None if static else "feedback"),
        "target": o.target, "rule": o.stop, "until": o.until, "per_seed": o.per_seed, "mode": o.mode,
        "where": o.where.split("\n") if isinstance(o.where, str) else list(o.where or ()), "seed": o.seed,
        "threshold": o.threshold, "score": o.score,
    }  # fmt: skip
    ends = o.until or o.max_read or o.threshold is not None or o.score is not None
    by_rule = o.stop is not None or o.target is not None or o.audit or not ends
    with (
        open_index(o.directory, o.encoder) as engine,
        _ledger(o.ledger, o.seeds, durable=judge is not None) as ledger,
    ):
        texts = seeds_of(o.seeds, engine, o.columns, ledger)
        review = _review(engine, ledger, texts, settings)
        answer = _reporting(
            o.progress, _asking(engine, texts, judge) if judge else _known(o.judgements, review)
        )
        report = read(review, answer, FindLimits(o.max_read, by_rule, o.audit), o.reviewer)
        if review.degraded:
            logger.warning("degraded: %s", review.degraded)
        if o.out is not None:
            export(ledger, engine, Path(o.out), verdicts=["relevant"], seeds={"", *(s.id for s in texts)})
    return report


def seeds_of(given: Seeds, engine: Engine, columns: Columns | None, ledger: Ledger) -> list[Seed]:
    """Return the seeds in a file or texts; a seed whose id and text are those of a document is linked to it.

    `columns` give the roles of a file's columns; without them, the index's own and the usual names are recognised. A
    file's unusable records go to a quarantine file next to the ledger.
    """
    columns = columns or dataclasses.replace(
        Columns.remembered(engine.collection.manifest.build.columns), usual=True
    )

    def document(id_: str, text: str) -> str:
        same = id_ in engine and text.strip() in (engine.document(id_).text, engine.document(id_).full_text)
        return id_ if same else ""

    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, (str, Path)):
        pairs = _in_file(Path(given), columns, ledger)
    else:
        pairs = [(str(number), text) for number, text in enumerate(given, start=1)]
    return [Seed(id_, text, document=document(id_, text)) for id_, text in pairs]


def _in_file(path: Path, columns: Columns, ledger: Ledger) -> list[tuple[str, str]]:
    """Return the ids and texts of a file's seeds; a text file without tabs is one seed, as in a folder of texts."""
    is_text = kind_of(path.name) == "text" and path.is_file()
    if is_text and not any(b"\t" in raw for _, raw, _ in read_lines(path)):
        return [(id_, document.full_text) for id_, document in read_documents(path)[0].items()]
    queries, bad = usable_queries(path, columns)
    report_skipped(bad)
    if place := quarantine(path, ledger, bad):
        logger.info("the unusable entries are in %s, with the reasons", place)
    if not queries:
        raise InputError(f"{path}: no text could be read; the first reason: {bad[0].reason}")
    return [(q.id, q.text) for q in queries]


def ledger_path(given: str | Path | None, seeds: str | Path) -> Path:
    """Return the file for the judgements: the one given, or one next to the seed file."""
    seeds = real(Path(seeds))
    return Path(given) if given else seeds.with_name(seeds.name + SUFFIX)


@contextlib.contextmanager
def _ledger(given: str | Path | None, seeds: Seeds, *, durable: bool) -> Iterator[Ledger]:
    if given is None and not isinstance(seeds, (str, Path)):
        with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder, "find" + SUFFIX)) as ledger:
            yield ledger
        return
    path = ledger_path(given, seeds if isinstance(seeds, (str, Path)) else "")
    with Ledger(path, durable=durable) as ledger:
        yield ledger


def _review(engine: Engine, ledger: Ledger, seeds: list[Seed], settings: Mapping[str, Any]) -> Review:
    """Return the review of a ledger with these seeds and settings. Raises InputError if it has other seeds."""
    earlier = {s.id for s in ledger.seeds}
    if earlier and earlier.isdisjoint(s.id for s in seeds):
        raise InputError(f"{ledger.path} is a review of different seeds: name another file with `ledger`")
    Settings.of({**ledger.settings, **settings})
    for key, value in settings.items():
        ledger.set(key, value)
    ledger.put_seeds(seeds)
    return Review(engine, ledger)


def _asking(engine: Engine, seeds: Sequence[Seed], judge: Judge) -> Callable[[Candidate], Answer]:
    by_id = {seed.id: seed for seed in seeds}

    def ask(candidate: Candidate) -> Answer:
        seed = by_id.get(candidate.seed) or Seed(candidate.seed, "")
        return judge(Question(seed, engine.document(candidate.id), candidate))

    return ask


def _known(judgements: Any, review: Review) -> Callable[[Candidate], Answer]:
    """Return a judge that answers from `judgements`: a document that they do not name is "not".

    If all seeds describe one story, a document is relevant if it is relevant to any of them.
    """
    qrels = load_qrels(judgements)
    every = [seed.id for seed in review.seeds]
    if qrels and every and not qrels.keys() & set(every):
        raise InputError(
            f"`judgements` name none of the seeds: they are about {next(iter(qrels))!r} and the like, and the first "
            f"seed is {every[0]!r}; are seeds and documents the wrong way round?"
        )

    def judge(candidate: Candidate) -> Answer:
        seeds = [candidate.seed] if review.settings.unit == "pairs" else every
        return "relevant" if any(qrels.get(s, {}).get(candidate.id, 0) > 0 for s in seeds) else "not"

    return judge


def _reporting(
    progress: Progress | None, judge: Callable[[Candidate], Answer]
) -> Callable[[Candidate], Answer]:
    """Wrap a judge so that it reports the number of answers to `progress` after each."""
    if progress is None:
        return judge
    numbers = itertools.count(1)

    def counted(candidate: Candidate) -> Answer:
        answer = judge(candidate)
        progress("judging", next(numbers), None)
        return answer

    return counted
