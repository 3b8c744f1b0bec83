"""`calibrate`: how probable each hit is a link, learned from judged links."""

from __future__ import annotations

import tempfile
from pathlib import Path

from linker.base.errors import InputError
from linker.base.logs import logger
from linker.base.progress import Progress, listening
from linker.cli.commands.given import Judgements, Queries, judgements_of, opened, queries_of
from linker.engine.engine import Engine
from linker.review.calibrating import calibrated
from linker.review.ledger import Ledger
from linker.scoring.probability import folder
from linker.scoring.probability.calibration import Calibration


def calibrate(
    directory: str | Path | Engine,
    queries: Queries | None = None,
    qrels: Judgements | None = None,
    *,
    ledger: str | Path | None = None,
    dev_share: float = 0.5,
    seed: int = 0,
    out: str | Path | None = None,
    encoder: str | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """Learn P(link) from judged queries, or from a review's ledger, and store it in the index or the folder `out`.

    `directory` is an index or an open Engine. `queries` and `qrels` are files, or mappings: id → text, and query →
    document → relevance. A share `dev_share` of the queries is held out, on which `.about` was measured and `.promise`
    rests. Raises InputError where too few hits are relevant, or too few are not.
    """
    if (queries is None) != (qrels is None) or (queries is None) == (ledger is None):
        raise InputError("give either `queries` with `qrels`, or `ledger`")
    with opened(directory, encoder) as engine, listening(progress):
        if ledger is not None:
            fitted = _of_review(engine, Path(ledger), dev_share, seed)
        else:
            assert queries is not None and qrels is not None
            judged = judgements_of(qrels)
            fitted = engine.calibrate(queries_of(queries), judged, held_share=dev_share, seed=seed)
        calibration = store(engine, fitted, None if out is None else Path(out))
        if engine.collection.manifest.search.get("ranker"):
            logger.info(
                "the index has a ranker, whose own P(link) searches show; with --no-rerank they show this one's"
            )
    return calibration


def _of_review(engine: Engine, path: Path, dev_share: float, seed: int) -> Calibration:
    if not path.is_file():  # which opening it would make
        raise InputError(f"{path} is no file: name the ledger of a review")
    return calibrated(engine, Ledger(path), held_share=dev_share, seed=seed)


def store(engine: Engine, fitted: Calibration, out: Path | None = None) -> Calibration:
    """Store a calibration in the index, or in the folder `out` instead; return it with its fingerprint."""
    with tempfile.TemporaryDirectory() as temporary:
        saved = folder.save(fitted, out or Path(temporary))
        if out is None:
            engine.store_calibration(Path(temporary))
    return saved
