"""`linker index tune`: search mode and weights, or how many candidates approximate search examines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linker.cli.common import AsJson, EncoderOption, Index, note, print_json

if TYPE_CHECKING:
    from linker.tuning import SearchSetting


def tune(
    directory: Index,
    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Judged dev queries; with --recall, any queries.", show_default=False
        ),
    ] = None,
    qrels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Relevance judgements of the queries.", show_default=False),
    ] = None,
    measure: Annotated[str, typer.Option("-m", "--measure", help="Measure to maximise.")] = "mrr",
    recall: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Instead, make approximate vector search find this share of the exact top k.",
            show_default=False,
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="With --recall: the k of the top k.")] = 10,
    sample: Annotated[
        int,
        typer.Option(min=1, help="With --recall, without --queries: documents held out as queries."),
    ] = 500,
    curve: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --recall: write the curve here, as JSON and PNG [default: DIR.recall.json]",
            show_default=False,
        ),
    ] = None,
    encoder: EncoderOption = None,
    as_json: AsJson = False,
) -> None:
    """Choose how an index is searched, and store the choice.

    Chooses search mode and fusion weights on judged dev queries or, with --recall, how many candidates approximate
    vector search examines.
    """
    if recall is not None:
        _tune_recall(directory, encoder, queries, recall, k, sample, curve, as_json)
        return
    if queries is None or qrels is None:
        raise typer.BadParameter("give --queries and --qrels, or --recall")
    _tune_mode(directory, encoder, queries, qrels, measure, as_json)


def _tune_recall(
    directory: Path,
    encoder: str | None,
    queries: Path | None,
    target: float,
    k: int,
    sample: int,
    curve: Path | None,
    as_json: bool,
) -> None:
    from linker.corpora import read_queries
    from linker.engine import Engine
    from linker.recall import write_curve

    engine = Engine.open(directory, encoder=encoder)
    texts = [q.text for q in read_queries(queries)] if queries else None
    tuning = engine.tune_recall(target, k, texts, sample=sample)
    path = curve or directory.resolve().with_name(f"{directory.resolve().name}.recall.json")
    picture = write_curve(tuning, path)
    if as_json:
        print_json(tuning.to_json())
    else:
        names = list(tuning.chosen.settings)
        print("".join(f"{name:>10}" for name in names) + f"{'recall':>10}{'CPU ms':>10}")
        for point in tuning.curve.points:
            values = "".join(f"{point.settings[name]:10.4g}" for name in names)
            print(f"{values}{point.recall:10.4f}{point.ms:10.3f}" + " chosen" * (point is tuning.chosen))
        print(f"{'exact':>{10 * len(names)}}{1:10.4f}{tuning.curve.exact_ms:10.3f}")
    note(
        f"the curve is in {path}"
        + (f" and {picture}" if picture else "; no picture: it needs the extra 'plot'")
    )
    if not tuning.reached:
        note(
            f"no setting finds {target:g}: the one with the highest recall was stored; --vectors flat finds everything"
        )


def _tune_mode(
    directory: Path, encoder: str | None, queries: Path, qrels: Path, measure: str, as_json: bool
) -> None:
    from linker.corpora import read_queries
    from linker.engine import Engine
    from linker.evaluation.reading.trec import read_qrels

    engine = Engine.open(directory, encoder=encoder)
    tuning = engine.tune(read_queries(queries), read_qrels(qrels), measure.lower())
    if as_json:
        print_json(
            {
                "chosen": _as_json(tuning.chosen),
                "reason": tuning.reason,
                "queries": tuning.queries,
                "candidates": [_as_json(c) for c in tuning.candidates],
            }
        )
        return
    best = sorted(tuning.candidates, key=lambda c: -c.means[tuning.measure])[:10]
    singles = [c for c in tuning.candidates if c.fusion is None and c not in best]
    print(f"{'':32}" + "".join(f"{name:>11}" for name in tuning.chosen.means))
    for candidate in best + singles:
        print(f"{_setting(candidate):32}" + "".join(f"{mean:11.4f}" for mean in candidate.means.values()))
    print(f"chosen: {_setting(tuning.chosen)}")
    note(tuning.reason)


def _as_json(candidate: SearchSetting) -> dict[str, Any]:
    fusion = candidate.fusion.to_json() if candidate.fusion else None
    return {"mode": candidate.mode, "fusion": fusion, **candidate.means}


def _setting(candidate: SearchSetting) -> str:
    fusion = candidate.fusion
    if fusion is None:
        return candidate.mode
    weights = ":".join(f"{w:g}" for w in fusion.weights)
    return f"{candidate.mode} {fusion.method} {weights}" + (
        f" k={fusion.k}" if fusion.method == "rrf" else ""
    )
