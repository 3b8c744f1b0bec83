"""`linker calibrate`, and the options of other commands that cut by P(link), by a promised precision, or by score."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linker.base.terminal import AsJson, Index, note, print_json
from linker.engine.options import EncoderOption

if TYPE_CHECKING:
    from indexes.hybrid import Answer
    from linker.engine.engine import Engine
    from linker.engine.options import Least
    from linker.scoring.probability.calibration import Calibration

PRECISIONS = (0.8, 0.9, 0.95)  # whose thresholds are shown


def cut(engine: Engine, answer: Answer, least: Least) -> Answer:
    """Return what these options keep of an answer, and say what a promise rests on.

    Raises InputError where there are no probabilities, or the ranker's, for which nothing was held out.
    """
    from linker.base.errors import InputError
    from linker.scoring.probability import cutting

    answer, precision = least.kept(answer), least.precision
    if precision is None:
        return answer
    if answer.ranker:
        raise InputError(
            "--precision needs links that were held out, which a ranker does not keep: search with --no-rerank"
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


def calibrate(
    directory: Index,
    queries: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Judged queries: JSONL, BEIR or TSV. Repeatable.", show_default=False
        ),
    ] = None,
    qrels: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Judgements of the queries. Repeatable.", show_default=False),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Learn from the judgements of this review instead.", show_default=False
        ),
    ] = None,
    dev_share: Annotated[
        float,
        typer.Option(
            min=0, max=0.9, help="Share of the queries held out, for measures and promised precision."
        ),
    ] = 0.5,
    seed: Annotated[int, typer.Option(min=0, help="Random seed that deals the queries.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write the calibration here instead of into the index.",
            show_default=False,
        ),
    ] = None,
    encoder: EncoderOption = None,
    as_json: AsJson = False,
) -> None:
    """Learn from judged links how probable a link each hit is.

    Searches then show P(link), and --precision keeps what a statistical test promises. Documents that the judgements
    of a query do not name count as not relevant. Include queries without a relevant document, if there will be such.

    Example: linker calibrate news.index --queries posts.jsonl --qrels links.qrels
    """
    if bool(queries) != bool(qrels) or bool(queries) == bool(ledger):
        raise typer.BadParameter("give either --queries with --qrels, or --ledger")
    from linker.cli import commands

    calibration = commands.calibrate(
        directory, queries, qrels, ledger=ledger, dev_share=dev_share, seed=seed, out=out, encoder=encoder
    )
    report(calibration, out or directory, as_json)


def report(calibration: Calibration, place: Path, as_json: bool) -> None:
    """Print what was fitted, how good it is on held-out links, and which precisions it can promise."""
    promises = {precision: calibration.promise(precision) for precision in PRECISIONS}
    about = dict(calibration.about)
    if as_json:
        told: list[dict[str, Any]] = [
            {"precision": wanted, "threshold": None}
            if p is None
            else {
                "precision": wanted, "threshold": p.threshold, "links": p.links, "right": p.right,
                "coverage": p.coverage, "delta": p.delta,
            }
            for wanted, p in promises.items()
        ]  # fmt: skip
        print_json({"calibration": calibration.fingerprint, **about, "promises": told})
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
    for wanted, promise in promises.items():
        print(f"  {promise or f'a precision of {wanted:g} cannot be promised: too few held-out links'}")
