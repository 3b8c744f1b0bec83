"""`linker index tune`: search mode and weights, or how many candidates approximate search examines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linker.base.options import Opt
from linker.base.terminal import AsJson, Index, note, print_json, warn
from linker.cli.options import with_flags
from linker.engine.options import EncoderOption

if TYPE_CHECKING:
    from linker.engine.recall import RecallTuning
    from linker.engine.tuning import Tuning

SHOWN = 10  # maximum number of settings shown


def tune(
    directory: Index,
    queries: Annotated[list[Path] | None, Opt(
        "Judged queries; with --recall, any queries. May be repeated.", metavar="FILE")] = None,
    qrels: Annotated[list[Path] | None, Opt(
        "Relevance judgements of the queries. May be repeated, for example with those of dev and train.",
        metavar="FILE")] = None,
    measure: Annotated[str, Opt("Measure to maximise.", "-m --measure")] = "mrr",
    recall: Annotated[float | None, Opt(
        "Instead, make approximate vector search find this share of the exact top k.", low=0, high=1)] = None,
    k: Annotated[int, Opt("With --recall: the k of the top k.", "-k", low=1)] = 10,
    sample: Annotated[int, Opt(
        "With --recall, without --queries: how many documents are held out as queries.", "--held-out", low=1)] = 500,
    seed: Annotated[int, Opt("Random seed of the cross-validation's folds.", low=0)] = 0,
    curve: Annotated[Path | None, Opt(
        "With --recall: write the curve here, as JSON and PNG [default: DIR.recall.json]", metavar="FILE")] = None,
    encoder: EncoderOption = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Choose how an index is searched, and store the choice.

    Chooses search mode and fusion weights on judged queries, by cross-validation: a choice has to beat the untuned
    index. With --recall, chooses how many candidates approximate vector search examines.

    Example: linker index tune news.index --queries posts.jsonl --qrels links.qrels
    """
    if recall is None and not (queries and qrels):
        raise typer.BadParameter("give --queries and --qrels, or --recall")
    from linker.cli.commands.arguments import read_all
    from linker.engine.engine import Engine
    from linker.evaluation.reading.judgements import merged_qrels

    judged = merged_qrels(qrels, warn) if qrels and recall is None else {}
    engine = Engine.open(directory, encoder=encoder)
    records = read_all(queries or [])
    if recall is not None:
        report = engine.tune_recall(recall, k, [q.text for q in records] if queries else None, sample=sample)
        _report_recall(report, directory, curve, as_json)
        return
    tuning = engine.tune(records, judged, measure.lower(), seed=seed)
    if as_json:
        print_json(tuning.to_json())
    else:
        _report(tuning)
    for warning in tuning.warnings:
        warn(warning)
    note(with_flags(tuning.reason))


def _report_recall(tuning: RecallTuning, directory: Path, curve: Path | None, as_json: bool) -> None:
    """Print the curve and write it to a file, by default next to the index."""
    from indexes.address import Address
    from linker.engine.recall import write_curve

    address = Address.of(directory)
    home = Path(address.name) if address else directory.resolve()
    path = curve or home.with_name(f"{home.name}.recall.json")
    unit = "ms" if address else "CPU ms"
    picture = write_curve(tuning, path)
    if as_json:
        print_json(tuning.to_json())
    else:
        names = list(tuning.chosen.settings)
        print("".join(f"{name:>10}" for name in names) + f"{'recall':>10}{unit:>10}")
        for point in tuning.curve.points:
            values = "".join(f"{point.settings[name]:10.4g}" for name in names)
            print(f"{values}{point.recall:10.4f}{point.ms:10.3f}" + " chosen" * (point is tuning.chosen))
        print(f"{'exact':>{10 * len(names)}}{1:10.4f}{tuning.curve.exact_ms:10.3f}")
    note(
        f"the curve is in {path}"
        + (f" and {picture}" if picture else "; no picture: it needs the extra 'plot'")
    )
    if not tuning.reached:
        stored = "the one with the highest recall was stored; --vectors flat finds everything"
        note(f"no setting finds {tuning.target:g}: {stored}")


def _report(tuning: Tuning) -> None:
    """Print the best settings, those with which the choice is compared, and the cost of each."""
    best = sorted(tuning.candidates, key=lambda c: -c.means[tuning.measure])[:SHOWN]
    more = [c for c in tuning.candidates if (c.fusion is None or c == tuning.default) and c not in best]
    print(f"{'':32}" + "".join(f"{name:>11}" for name in tuning.chosen.means))
    for candidate in best + more:
        marks = " default" * (candidate == tuning.default) + " chosen" * (candidate == tuning.chosen)
        print(f"{candidate!s:32}" + "".join(f"{mean:11.4f}" for mean in candidate.means.values()) + marks)
    print(f"chosen: {tuning.chosen}")
    for name, cost in tuning.costs.items():
        print(f"  {name} would cost {cost} {tuning.measure} out of fold")
