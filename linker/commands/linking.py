"""`link`: the counterparts of every page in another language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from indexes.showing import SHOWN, brief, table
from linker.corpora import BadLine
from linker.crosslingual.lexicon.dictionaries import Dictionary, read_dictionary
from linker.crosslingual.pages.pages import Pages, read_pages, split_languages
from linker.crosslingual.ranking.saved import LinkModel, check_writable, load, save
from linker.crosslingual.runs import linked, run_of
from linker.crosslingual.scoring.hapax import HapaxRules
from linker.crosslingual.task import NO_LINKS, Options, Task, read_links
from linker.errors import InputError
from linker.logs import logger
from linker.progress import Progress, listening

Method = Literal["hapax", "dictionary", "pivot", "cascade", "encoder", "auto"]


@dataclass(frozen=True, slots=True)
class Links:
    """The links of pages: `run` holds the targets of each linked page with their scores, best first.

    `pages` and `targets` count the pages on both sides, `metadata` says how the links were made. `evaluate` takes
    `run`.
    """

    run: Mapping[str, Mapping[str, float]]
    method: str
    pages: int
    targets: int
    metadata: Mapping[str, Any] = field(repr=False)

    def __len__(self) -> int:
        return len(self.run)

    def __repr__(self) -> str:
        first = brief([f"{page} → {next(iter(best))}" for page, best in self.run.items()], 3)
        return f"<Links by {self.method}: {len(self)} of {self.pages} pages{': ' if first else ''}{first}>"

    def _repr_html_(self) -> str:
        rows = [(page, *next(iter(best.items()))) for page, best in list(self.run.items())[:SHOWN]]
        caption = f"{len(self):,} of {self.pages:,} pages linked, method {self.method}"
        return table(rows, ("page", "counterpart", "score"), caption)


def link(
    source: str | Path,
    target: str | Path,
    method: Method,
    out: str | Path | None = None,
    *,
    languages: str | None = None,
    dictionary: Sequence[str | Path] = (),
    train: str | Path | None = None,
    pivot: str | Path | None = None,
    pivot_links: str | Path | None = None,
    pivot_mode: Literal["filter", "boost"] = "filter",
    encoder: str | None = None,
    weighting: Literal["idf", "binary", "tfidf-cosine"] = "idf",
    identity: bool = True,
    whole_dictionary: bool = False,
    margin: bool | None = None,
    transliterate: bool = False,
    ngrams: int = 0,
    keep_edges: bool = False,
    min_probability: float = 0.0,
    self_train: bool = False,
    explain: bool = False,
    k: int = 5,
    one_to_one: bool = False,
    run_name: str = "linker",
    resume: bool = False,
    seed: int = 0,
    model: str | Path | None = None,
    save_model: str | Path | None = None,
    progress: Progress | None = None,
) -> Links:
    """Link the pages of `source` to their counterparts in `target`: files or folders in two languages.

    The options are those of `linker link`. With `out`, the run is written there in six columns, with RUN.json beside
    it, and can be resumed. `save_model` keeps what was learned in a folder, which `model` uses again. Raises
    InputError where a file cannot be read, or the method lacks an input that it needs.
    """
    _check_saving(method, save_model)
    with listening(progress):
        codes = split_languages(languages) if languages else (None, None)
        source_pages, target_pages = _pages(source, codes[0]), _pages(target, codes[1])
        pivot_pages = _pages(pivot, None) if pivot else None
        known = read_links(Path(train), source_pages, target_pages) if train else NO_LINKS
        through = NO_LINKS
        if pivot_pages and pivot_links:
            through = read_links(Path(pivot_links), pivot_pages, target_pages)
        options = Options(
            weighting=weighting,
            identity=identity,
            whole_dictionary=whole_dictionary,
            margin=margin,
            pivot_mode=pivot_mode,
            hapax=HapaxRules(strip=not keep_edges, transliterate=transliterate, ngrams=ngrams),
            min_probability=min_probability,
            self_train=self_train,
            explain=explain,
            seed=seed,
        )
        task = Task(
            source_pages, target_pages, tuple(map(_dictionary, dictionary)), known, pivot_pages, through,
            encoder, one_to_one, options, model=_model(model),
        )  # fmt: skip
        path = None if out is None else Path(out)
        result = linked(task, method, path, k=k, name=run_name, resume=resume)
        if save_model and result.model:
            save(result.model(), Path(save_model))
    run = run_of(source_pages, target_pages, result.candidates)
    return Links(run, method, len(source_pages), len(target_pages), result.metadata)


def _check_saving(method: Method, folder: str | Path | None) -> None:
    """Raise InputError where a model could not be saved, before anything is learned."""
    if folder is None:
        return
    if method not in ("auto", "cascade"):
        raise InputError(
            f"--save-model is for the methods that learn, auto and cascade, not {method!r}: leave it out"
        )
    check_writable(Path(folder))


def _model(folder: str | Path | None) -> LinkModel | None:
    if folder is None:
        return None
    model = load(Path(folder))
    pair = "-".join(one.code for one in model.languages)
    logger.info(
        "%s: a model of %s, method %s, %s links",
        folder,
        pair,
        model.method,
        f"{len(model.knowledge.links):,}",
    )
    return model


def _pages(path: str | Path, code: str | None) -> Pages:
    pages = read_pages(Path(path), code)
    logger.info("%s: %s pages, language %s", path, f"{len(pages):,}", pages.language.code)
    _report(pages.skipped)
    return pages


def _dictionary(path: str | Path) -> Dictionary:
    dictionary = read_dictionary(Path(path))
    logger.info("%s: %s pairs, read as %s", path, f"{len(dictionary.pairs):,}", dictionary.format)
    _report(dictionary.skipped)
    return dictionary


def _report(skipped: Sequence[BadLine]) -> None:
    if skipped:
        first = skipped[0]
        logger.info(
            f"{first.path}: {len(skipped):,} unusable entries left out; the first is line {first.line}: {first.reason}"
        )
