"""`linker evaluate`, `linker compare` and `linker evaluate-pairs`: results on stdout, remarks on stderr."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from linker.cli.common import AsJson, note, print_json
from linker.printable import print_for_programs

if TYPE_CHECKING:
    from linker.evaluation.comparison import Comparison

Qrels = Annotated[
    Path,
    typer.Argument(
        metavar="QRELS", help="Judgements: TREC's four columns or BEIR's TSV.", show_default=False
    ),
]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "-m",
        "--measure",
        help="Repeatable: map, P.5,10, nDCG@10, MRR, success.1,5, auc, official, …",
        show_default=False,
    ),
]
Complete = Annotated[
    bool,
    typer.Option(
        "-c/",
        "--complete/--answered-only",
        help="Average over all judged topics (trec_eval's -c; the default), or over those the run answers.",
        show_default=False,
    ),
]
Level = Annotated[int, typer.Option("-l", "--level", min=1, help="Lowest relevance that counts as relevant.")]
JudgedOnly = Annotated[bool, typer.Option("-J", "--judged-only", help="Leave unjudged documents out.")]
Most = Annotated[
    int | None,
    typer.Option("-M", "--max-docs", min=1, help="Keep this many documents of a topic.", show_default=False),
]
Version = Annotated[
    Literal["trec_eval-9", "trec_eval-10"],
    typer.Option(help="9 compares scores as float32, 10 as doubles."),
]
Samples = Annotated[int, typer.Option(min=100, help="Resamples drawn.")]
Seed = Annotated[int, typer.Option(help="Seed of the resampling.")]


def evaluate(
    qrels: Qrels,
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run in TREC's six columns.", show_default=False)
    ],
    measure: Measures = None,
    per_topic: Annotated[bool, typer.Option("-q", "--per-topic", help="Also print every topic.")] = False,
    no_summary: Annotated[bool, typer.Option("-n", "--no-summary", help="Leave the averages out.")] = False,
    complete: Complete = True,
    level: Level = 1,
    judged_only: JudgedOnly = False,
    most: Most = None,
    compat: Version = "trec_eval-9",
    ties: Annotated[
        bool, typer.Option("--ties", help="Count ties; bound each measure over all orders of tied scores.")
    ] = False,
    interval: Annotated[bool, typer.Option("--ci", help="Add 95% bootstrap intervals.")] = False,
    samples: Samples = 1000,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Evaluate a run; stdout is what `trec_eval -c` prints, byte for byte (without -c: --answered-only)."""
    from linker.evaluation.evaluator import Resampling
    from linker.evaluation.evaluator import evaluate as run_evaluation

    result = run_evaluation(
        qrels,
        run,
        measure or ["official"],
        complete=complete,
        level=level,
        judged_only=judged_only,
        most=most,
        compat=compat,
        ties=ties,
        intervals=Resampling(samples, seed=seed) if interval else None,
    )
    if as_json:
        print_json(result.to_dict(per_topic=per_topic))
    else:
        print_for_programs(result.text(per_topic=per_topic, summary=not no_summary))
    note(result.coverage())


def compare(
    qrels: Qrels,
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Two runs or more.", show_default=False)
    ],
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Compare with this run. Default: the first.", show_default=False),
    ] = None,
    measure: Measures = None,
    test: Annotated[Literal["randomisation", "t"], typer.Option(help="Paired test behind the p-values.")] = (
        "randomisation"
    ),
    complete: Complete = True,
    level: Level = 1,
    compat: Version = "trec_eval-9",
    samples: Samples = 10_000,
    seed: Seed = 0,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print a LaTeX table (booktabs).")] = False,
    as_json: AsJson = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw the differences topic by topic of the first measure (PNG or SVG; needs the extra 'plot').",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Compare runs with a baseline: differences, intervals, p-values (Holm), wins, ties and losses."""
    if markdown + latex + as_json > 1:
        raise typer.BadParameter("choose one of --markdown, --latex and --json")
    from linker.evaluation.comparison import compare as run_comparison
    from linker.evaluation.evaluator import Resampling

    result = run_comparison(
        qrels,
        runs,
        measure or ["map", "recip_rank", "success.1,5"],
        baseline=baseline,
        test=test,
        complete=complete,
        level=level,
        compat=compat,
        resampling=Resampling(samples, seed=seed),
    )
    _print_comparison(result, markdown=markdown, latex=latex, as_json=as_json)
    if plot is not None:
        from linker.evaluation.plot import plot_differences

        plot_differences(result, plot)
        note(f"{plot}: differences by topic")


def _print_comparison(result: Comparison, *, markdown: bool, latex: bool, as_json: bool) -> None:
    if as_json:
        print_json(result.to_dict())
    else:
        print(result.latex() if latex else result.markdown() if markdown else result.text(), end="")
    for line in result.remarks():
        note(line)


def evaluate_pairs(
    articles: Annotated[
        Path, typer.Argument(metavar="ARTICLES.npy", help="Vectors [n, d].", show_default=False)
    ],
    tweets: Annotated[Path, typer.Argument(metavar="TWEETS.npy", help="Vectors [m, d].", show_default=False)],
    links: Annotated[
        Path,
        typer.Argument(
            metavar="LINKS.tsv", help="Article and tweet of each link, a line each.", show_default=False
        ),
    ],
    article_ids: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Ids of the articles, a line each, if links hold ids.", show_default=False
        ),
    ] = None,
    tweet_ids: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Ids of the tweets, a line each.", show_default=False)
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Inner products of the vectors as they are.")] = False,
    threshold: Annotated[
        list[float] | None,
        typer.Option(
            "-t", "--threshold", help="Repeatable: confusion counts at score ≥ T.", show_default=False
        ),
    ] = None,
    until: Annotated[
        list[int] | None,
        typer.Option(
            "-u", "--until", min=1, help="Repeatable: pairs read until N links.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score all article × tweet pairs by cosine and print the AST tables: precision at r, mRP, mAP, AUC."""
    from linker.evaluation.all_pairs.evaluate import evaluate_vectors
    from linker.evaluation.all_pairs.input import read_links, read_vectors

    a, t = read_vectors(articles), read_vectors(tweets)
    pairs = read_links(links, (len(a), article_ids), (len(t), tweet_ids))
    result = evaluate_vectors(a, t, pairs, normalise=not raw, thresholds=threshold or (), until=until or ())
    if as_json:
        print_json(result.to_dict())
    else:
        print(result.text(), end="")
