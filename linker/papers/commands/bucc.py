"""`linker bucc prepare`, `dictionary`, `evaluate`: the shared task's data, words learned from them, and results."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from indexes.cores import cores
from linker.base.files import path_text
from linker.base.options import Opt
from linker.base.terminal import AsJson, note, print_json
from linker.crosslingual.options import Languages


def prepare(
    out: Annotated[Path, Opt("Folder for the prepared data.", metavar="DIR")],
    source: Annotated[
        Path | None,
        Opt("Raw pages: JSON from wikiextractor, JSONL, or MediaWiki's XML dump.", "", metavar="[SOURCE]"),
    ] = None,
    target: Annotated[Path | None, Opt("Raw pages in the other language.", "", metavar="[TARGET]")] = None,
    languages: Annotated[
        str | None,
        Opt("Codes of the two languages. Default: those of --dump, in their order.", metavar="FR-EN"),
    ] = None,
    dump: Annotated[
        list[str] | None,
        Opt(
            "A wiki's dump, in place of SOURCE and TARGET: WIKI-pages-articles.xml.bz2, .gz, .xz or .xml. "
            "Once per language, or once per part.",
            metavar="CODE=FILE",
        ),
    ] = None,
    langlinks: Annotated[
        list[str] | None,
        Opt(
            "A dump's interlanguage links: WIKI-langlinks.sql.gz. Default: [[en:Title]] in the pages.",
            metavar="CODE=FILE",
        ),
    ] = None,
    links: Annotated[
        Path | None,
        Opt(
            "Links: lines `source page TAB target page` (id or title). Default: the pages' langlinks field.",
            metavar="FILE",
        ),
    ] = None,
    back_links: Annotated[
        Path | None, Opt("Reverse links: lines `target page TAB source page`.", metavar="FILE")
    ] = None,
    first_stop: Annotated[
        bool,
        Opt(
            "Texts begin after their first full stop, as in the paper, not after their first sentence.",
            "--first-stop",
        ),
    ] = False,
    seed: Annotated[int, Opt("Random seed of the split and the ids.")] = 0,
    jobs: Annotated[int | None, Opt("Processes that parse the pages. Default: one per core.", low=1)] = None,
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
    source: Annotated[Path, Opt("Pages: a file or folder.", "", metavar="SOURCE")],
    target: Annotated[Path, Opt("Pages in the other language.", "", metavar="TARGET")],
    out: Annotated[Path, Opt("Write the dictionary as lines `word TAB word`.", metavar="FILE")],
    languages: Languages = None,
    seed: Annotated[int, Opt("Random seed of the mapping.")] = 0,
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
        f"{result.agreement:.0%} were matched correctly"
    )


def evaluate(
    qrels: Annotated[
        list[Path], Opt("Gold links, one file per language (fr.test.txt).", "", metavar="QRELS...")
    ],
    run: Annotated[list[Path], Opt("A run of one or more languages (repeatable).", "--run", metavar="RUN")],
    threshold: Annotated[
        float | None,
        Opt("Count only links with at least this score. Default: every line of rank 1.", metavar="SCORE"),
    ] = None,
    best_threshold: Annotated[
        bool,
        Opt("Use each run's best threshold on the gold links: an oracle, not a result.", "--best-threshold"),
    ] = False,
    known: Annotated[
        list[Path] | None,
        Opt("Leave the pages of these links out, such as training links (repeatable).", metavar="QRELS"),
    ] = None,
    seed: Annotated[int, Opt("Random seed of the intervals and tests.")] = 0,
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
