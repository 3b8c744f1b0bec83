"""`linker evaluate` and `linker compare`: results on stdout, notes on stderr."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from linker.base.files import STDIO
from linker.base.options import Opt, values
from linker.base.printable import print_for_programs
from linker.base.terminal import AsJson, note, print_json, warn
from linker.evaluation.options import Counting, EvaluateOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from linker.evaluation.comparison import Comparison
    from linker.evaluation.run_table import RunTable

Qrels = Annotated[Path, Opt(
    "Judgements: TREC, BEIR's TSV or folder, JSON, Parquet, ir_datasets:ID; - is stdin.",
    "", metavar="QRELS")]  # fmt: skip
Measures = Annotated[list[str] | None, Opt(
    "Measure to print (repeatable): map, P@5, nDCG@10, MRR, ERR@20, RBP(p=0.8), infAP, auc, official, …",
    "-m --measure")]  # fmt: skip
Samples = Annotated[int, Opt("Number of resamples.", low=100)]
Seed = Annotated[int, Opt("Random seed of the resampling.")]


def evaluate(
    qrels: Qrels,
    runs: Annotated[list[Path], Opt(
        "Runs: TREC's six columns, JSON (ranx, pytrec_eval), JSON lines or Parquet; - is stdin.", "",
        metavar="RUN...")],
    options: EvaluateOptions,
    measure: Measures = None,
    per_topic: Annotated[bool, Opt("Also print the values of each topic.", "-q --per-topic")] = False,
    no_summary: Annotated[bool, Opt("Omit the averages.", "-n --no-summary")] = False,
    interval: Annotated[bool, Opt("Add 95% bootstrap confidence intervals.", "--ci")] = False,
    samples: Annotated[int | None, Opt(
        "Resamples [default: 1,000 for --ci, 10,000 for the tests of a table].", low=100)] = None,
    seed: Seed = 0,
    markdown: Annotated[bool, Opt("Print a Markdown table.", "--markdown")] = False,
    latex: Annotated[bool, Opt("Print a LaTeX table (booktabs).", "--latex")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Evaluate one run as trec_eval does, or several in a table.

    For one run, stdout is byte for byte that of `trec_eval -c` (with --answered-only, that of `trec_eval`). Several
    runs, --latex or --markdown give a table with a row per run: the best values in bold, † and ‡ if a run differs
    significantly from the first one.

    Example: linker evaluate links.qrels links.run -m nDCG@10
    """
    from linker.evaluation.evaluator import Resampling
    from linker.evaluation.evaluator import evaluate as run_evaluation
    from linker.evaluation.formats import load_qrels

    if markdown + latex + as_json > 1:
        raise typer.BadParameter("choose one of --markdown, --latex and --json")
    if [qrels, *runs].count(STDIO) > 1:
        raise typer.BadParameter("only one of the files can come from stdin")
    counting = values(options)
    ties = counting.pop("ties")
    judgements = load_qrels(qrels, warn)
    if len(runs) > 1 or markdown or latex:
        if ties or interval or no_summary or (per_topic and not as_json):
            raise typer.BadParameter(
                "a table cannot be combined with --ties, --ci or -n, and --per-topic then requires --json"
            )
        from linker.evaluation.run_table import DEFAULT, tabulate

        how = Resampling(samples or 10_000, seed=seed)
        table = tabulate(judgements, runs, measure or DEFAULT, resampling=how, **counting)
        shown = table.to_dict(per_topic=per_topic) if as_json else None
        _print_table(table, shown, markdown=markdown, latex=latex)
        return
    intervals = Resampling(samples or 1000, seed=seed) if interval else None
    result = run_evaluation(
        judgements, runs[0], measure or ["official"], ties=ties, intervals=intervals, **counting
    )
    if as_json:
        print_json(result.to_dict(per_topic=per_topic))
    else:
        print_for_programs(result.text(per_topic=per_topic, summary=not no_summary))
    note(result.coverage())


def compare(
    qrels: Qrels,
    runs: Annotated[list[Path], Opt("Two or more runs.", "", metavar="RUN...")],
    counting: Counting,
    baseline: Annotated[Path | None, Opt("Run to compare with. Default: the first.", metavar="RUN")] = None,
    measure: Measures = None,
    test: Annotated[Literal["randomisation", "t"], Opt(
        "Paired test that gives the p-values.")] = "randomisation",
    samples: Samples = 10_000,
    seed: Seed = 0,
    markdown: Annotated[bool, Opt("Print a Markdown table.", "--markdown")] = False,
    latex: Annotated[bool, Opt("Print a LaTeX table (booktabs).", "--latex")] = False,
    as_json: AsJson = False,
    plot: Annotated[Path | None, Opt(
        "Plot the first measure's differences per topic (PNG or SVG; needs the extra 'plot').", metavar="FILE")] = None,
) -> None:  # fmt: skip
    """Compare runs with a baseline.

    Prints differences, intervals, Holm-corrected p-values, wins, ties and losses.

    Example: linker compare links.qrels bm25.run hybrid.run -m map
    """
    if markdown + latex + as_json > 1:
        raise typer.BadParameter("choose one of --markdown, --latex and --json")
    from linker.evaluation.comparison import compare as run_comparison
    from linker.evaluation.formats import load_qrels
    from linker.evaluation.plot import check_plot, plot_differences

    if plot is not None:
        check_plot(plot)
    result = run_comparison(
        load_qrels(qrels, warn),
        runs,
        measure or ["map", "recip_rank", "success.1,5"],
        baseline=baseline,
        test=test,
        samples=samples,
        seed=seed,
        **values(counting),
    )
    _print_table(result, result.to_dict() if as_json else None, markdown=markdown, latex=latex)
    if plot is not None:
        plot_differences(result, plot)
        note(f"{plot}: differences per topic")


def _print_table(
    table: Comparison | RunTable, values: Mapping[str, Any] | None, *, markdown: bool, latex: bool
) -> None:
    """Print a table, or `values` as JSON if given, and then remarks on the table."""
    if values is not None:
        print_json(values)
    else:
        print(table.latex() if latex else table.markdown() if markdown else table.text(), end="")
    for line in table.remarks():
        note(line)
