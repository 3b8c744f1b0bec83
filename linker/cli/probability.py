"""`linker calibrate`, and other commands' options to keep hits by P(link), by a certified precision, or by score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linker.base.options import values
from linker.base.terminal import AsJson, note, print_json
from linker.review.options import CalibrateOptions

if TYPE_CHECKING:
    from indexes.hybrid import Answer
    from linker.engine.engine import Engine
    from linker.engine.options import Least
    from linker.scoring.probability.calibration import Calibration

PRECISIONS = (0.8, 0.9, 0.95)  # precisions whose thresholds are shown
PROMISED = ("threshold", "links", "right", "coverage", "delta")  # attributes of a promise that are shown


def cut(engine: Engine, answer: Answer, least: Least) -> Answer:
    """Return the hits that these options keep, and report the evidence for a certified precision.

    Raises InputError if there are no probabilities, or only a ranker's, for which no links were held out.
    """
    from linker.base.errors import InputError
    from linker.scoring.probability import cutting

    answer, precision = least.cut(answer), least.precision
    if precision is None:
        return answer
    if answer.ranker:
        raise InputError(
            "--precision needs held-out links, which a ranker does not keep: search with --no-rerank"
        )
    calibration = engine.calibration if answer.probabilities is not None else None
    promise = calibration.promise(precision) if calibration else None
    answer = cutting.by_promise(answer, promise)
    note(str(promise) if promise else _nothing_certified(precision, calibration))
    return answer


def _nothing_certified(precision: float, calibration: Calibration | None) -> str:
    held = len(calibration.held) if calibration else 0
    return (
        f"no threshold is certified to keep a precision of {precision:g} on the {held} held-out links, so nothing is "
        "returned: calibrate on more judged queries, or ask for less"
    )


def calibrate(options: CalibrateOptions, as_json: AsJson = False) -> None:
    """Learn P(link), the probability that a hit is correct.

    Searches then show P(link), and --precision keeps the links that a statistical test certifies. Documents not named
    in a query's judgements count as not relevant. Include queries without a relevant document, if you expect such
    queries.

    Example: linker calibrate news.index --queries posts.jsonl --qrels links.qrels
    """
    from linker.cli.commands import calibrating

    report(calibrating.calibrate(**values(options)), options.out or options.directory, as_json)


def report(calibration: Calibration, place: object, as_json: bool) -> None:
    """Print what was fitted, how good it is on held-out links, and which precisions it can promise."""
    promises = {precision: calibration.promise(precision) for precision in PRECISIONS}
    about = dict(calibration.about)
    if as_json:
        values: list[dict[str, Any]] = [
            {
                "precision": precision,
                **({name: getattr(p, name) for name in PROMISED} if p else {"threshold": None}),
            }
            for precision, p in promises.items()
        ]
        print_json({"calibration": calibration.fingerprint, **about, "promises": values})
        return
    print(f"{place}: {calibration.fingerprint}, fitted on {about['fitted']:,} hits")
    if not about["held"]:
        print("no query was held out: nothing is measured, and no precision can be promised")
        return
    print(f"on {about['held']:,} held-out first hits, of which {about['base_rate']:.1%} are right:")
    print(
        f"  calibration error {about['calibration_error']:.4f} (by chance alone {about['noise_floor']:.4f}), "
        f"Brier score {about['brier']:.4f}, {about['brier_gain']:.0%} below the base rate's"
    )
    if "auc" in about:
        print(f"  AUC {about['auc']:.4f}, BM25's score alone {about['auc_bm25']:.4f}")
    for precision, promise in promises.items():
        print(f"  {promise or f'a precision of {precision:g} cannot be promised: too few held-out links'}")
