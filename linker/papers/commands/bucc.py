"""`linker bucc prepare`, `dictionary`, `evaluate`: the shared task's data, words learned from them, and results."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from indexes.cores import cores
from linker.base.files import path_text
from linker.base.terminal import AsJson, note, print_json
from linker.crosslingual.options import Languages


def prepare(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the prepared data.", show_default=False)
    ],
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[SOURCE]",
            help="Raw pages: JSON from wikiextractor, JSONL, or MediaWiki's XML dump.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        Path | None,
        typer.Argument(metavar="[TARGET]", help="Raw pages in the other language.", show_default=False),
    ] = None,
    languages: Annotated[
        str | None,
        typer.Option(
            metavar="FR-EN",
            help="Codes of the two languages. Default: those of --dump, in their order.",
            show_default=False,
        ),
    ] = None,
    dump: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODE=FILE",
            help="A wiki's dump, in place of SOURCE and TARGET: WIKI-pages-articles.xml.bz2, .gz, .xz or .xml. "
            "Once per language, or once per part.",
            show_default=False,
        ),
    ] = None,
    langlinks: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODE=FILE",
            help="A dump's interlanguage links: WIKI-langlinks.sql.gz. Default: [[en:Title]] in the pages.",
            show_default=False,
        ),
    ] = None,
    links: Annotated[
        Path | None,
        typer.Option(
            "--forward-links",
            metavar="FILE",
            help="Links: lines `source page TAB target page` (id or title). Default: the pages' langlinks field.",
            show_default=False,
        ),
    ] = None,
    back_links: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Reverse links: lines `target page TAB source page`.", show_default=False
        ),
    ] = None,
    first_stop: Annotated[
        bool,
        typer.Option(
            "--first-stop",
            help="Texts begin after their first full stop, as in the paper, not after their first sentence.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Random seed of the split and the ids.")] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Processes that parse the pages. Default: one per core.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Prepare raw pages or two wikis' dumps for the task.

    The pages are linked both ways, stripped of their first sentences, of similar lengths and split in half.

    Example: linker bucc prepare fr.jsonl en.jsonl --languages fr-en --out data
    """
    from linker.papers.bucc.prepare import prepare as run_prepare
    from linker.papers.bucc.raw_pages import described_by

    codes, raw = described_by(source, target, languages, dump or (), langlinks or ())
    report = run_prepare(
        *raw, out, codes, links, back_links, seed=seed, jobs=jobs or cores(), first_stop=first_stop
    )
    if report.ambiguous_pairs:
        note(f"{report.ambiguous_pairs:,} pairs are left out, because a name fits several of their pages")
    if as_json:
        print_json(report.to_dict())
    else:
        print(report.text(), end="")
    note(f"{out}: written")


def dictionary(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="Pages: a file or folder.", show_default=False)
    ],
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="Pages in the other language.", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="Write the dictionary as lines `word TAB word`.", show_default=False
        ),
    ],
    languages: Languages = None,
    seed: Annotated[int, typer.Option(help="Random seed of the mapping.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Learn a dictionary from pages in two languages, without links.

    Word vectors of both are mapped onto each other, starting from words that are spelt alike. Many of the pairs are
    wrong: pass the file to `linker link --dictionary` only if you have no better one.

    Example: linker bucc dictionary fr.jsonl en.jsonl --out fr-en.tsv
    """
    from linker.crosslingual.inducing import learn_dictionary

    result = learn_dictionary(source, target, out, languages=languages, seed=seed)
    if as_json:
        print_json({**asdict(result), "file": path_text(result.file)})
    note(
        f"{out}: {result.pairs:,} pairs of stems; of the held-out words that are spelt alike, "
        f"{result.agreement:.0%} were found again"
    )


def evaluate(
    qrels: Annotated[
        list[Path],
        typer.Argument(
            metavar="QRELS...", help="Gold links, one file per language (fr.test.txt).", show_default=False
        ),
    ],
    run: Annotated[
        list[Path],
        typer.Option(
            "--run", metavar="RUN", help="A run of one or more languages (repeatable).", show_default=False
        ),
    ],
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="SCORE",
            help="Count only links with at least this score. Default: every line of rank 1.",
            show_default=False,
        ),
    ] = None,
    best_threshold: Annotated[
        bool,
        typer.Option(
            "--best-threshold",
            help="Use each run's best threshold on the gold links: an oracle, not a result.",
        ),
    ] = False,
    known: Annotated[
        list[Path] | None,
        typer.Option(
            "--leave-out",
            metavar="QRELS",
            help="Leave the pages of these links out, such as training links (repeatable).",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the intervals and tests.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Evaluate runs of the task.

    Prints MRR, success at 1 and 5 and coverage, over all pages and over the answered pages; precision, recall and F1
    of the links; and the differences from the first run.

    Example: linker bucc evaluate test.qrels --run links.run
    """
    from linker.base.errors import InputError
    from linker.evaluation.evaluator import Resampling
    from linker.evaluation.reading.judgements import merged_qrels
    from linker.papers.bucc.table import TableSettings, evaluate_runs, remarks, to_text

    if best_threshold and threshold is not None:
        raise InputError("--threshold and --best-threshold exclude each other: give one of them")
    pages = frozenset(merged_qrels(known or ()))
    resampling = (Resampling(1000, seed=seed), Resampling(10_000, seed=seed))
    rows = evaluate_runs(qrels, run, TableSettings(threshold, best_threshold, pages, *resampling))
    for line in remarks(rows):
        note(line)
    if as_json:
        print_json([row.to_dict() for row in rows])
    else:
        print(to_text(rows), end="")
