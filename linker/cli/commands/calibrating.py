"""`calibrate`: the probability that each hit is a link, learned from judged links."""

import tempfile
from collections.abc import Iterable
from pathlib import Path

from linker.base.errors import InputError
from linker.base.logs import logger
from linker.base.options import takes
from linker.base.progress import listening
from linker.cli.commands.arguments import judgements_of, open_index, queries_of
from linker.corpora import Query
from linker.engine.engine import Engine
from linker.review.interface import Judgement
from linker.review.ledger import Ledger
from linker.review.options import CalibrateOptions
from linker.review.session import Records
from linker.scoring.probability import folder
from linker.scoring.probability.calibration import Calibration

GRADES = {"relevant": 1.0, "not": 0.0}


def calibrate_review(
    engine: Engine, ledger: Records, *, held_share: float = 0.5, seed: int = 0
) -> Calibration:
    """Return a calibration fitted on the judgements of a review; once saved, `Engine.store_calibration` stores it.

    Only judged pairs are used, so the probabilities apply to documents like those that the review showed. Raises
    InputError if fewer than 20 judged documents are relevant, or fewer than 20 are not.
    """
    queries = [Query(s.id, s.full_text) for s in ledger.seeds]
    qrels = agreed_qrels(ledger.judgements())
    return engine.calibrate(queries, qrels, complete=False, held_share=held_share, seed=seed)


def agreed_qrels(judgements: Iterable[Judgement]) -> dict[str, dict[str, float]]:
    """Return the relevance, 1 or 0, of each document by seed; a pair on which reviewers disagree is left out.

    "maybe" and "skip" do not count.
    """
    said: dict[tuple[str, str], set[float]] = {}
    for judgement in judgements:
        if judgement.verdict in GRADES:
            said.setdefault((judgement.seed, judgement.id), set()).add(GRADES[judgement.verdict])
    qrels: dict[str, dict[str, float]] = {}
    for (seed, id_), grades in said.items():
        if len(grades) == 1:
            qrels.setdefault(seed, {})[id_] = grades.pop()
    return qrels


@takes(CalibrateOptions)
def calibrate(options: CalibrateOptions) -> Calibration:
    """Learn P(link) from judged queries, or from a review's ledger, and store it in the index or the folder `out`.

    `directory` is an index or an open Engine. `queries` and `qrels` are files, or mappings: id → text, and query →
    document → relevance. A share `dev_share` of the queries is held out, for the measures in `.about` and for
    `.promise`. Raises InputError if too few hits are relevant, or too few are not.
    """
    share, seed = options.dev_share, options.seed
    with open_index(options.directory, options.encoder) as engine, listening(options.progress):
        if options.queries is not None and options.qrels is not None:
            queries, judged = queries_of(options.queries), judgements_of(options.qrels)
            fitted = engine.calibrate(queries, judged, held_share=share, seed=seed)
        else:
            fitted = _of_review(engine, Path(options.ledger or ""), share, seed)
        calibration = store(engine, fitted, None if options.out is None else Path(options.out))
        if engine.collection.manifest.search.get("ranker"):
            logger.info(
                "the index has a ranker, and searches show its P(link); with --no-rerank they show this calibration's"
            )
    return calibration


def _of_review(engine: Engine, path: Path, dev_share: float, seed: int) -> Calibration:
    if not path.is_file():  # opening a missing ledger would create it
        raise InputError(f"{path} is not a file: name the ledger of a review")
    return calibrate_review(engine, Ledger(path), held_share=dev_share, seed=seed)


def store(engine: Engine, fitted: Calibration, out: Path | None = None) -> Calibration:
    """Store a calibration in the index, or in the folder `out` instead; return it with its fingerprint."""
    with tempfile.TemporaryDirectory() as temporary:
        saved = folder.save(fitted, out or Path(temporary))
        if out is None:
            engine.store_calibration(Path(temporary))
    return saved
