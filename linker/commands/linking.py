"""`link`: the counterparts of every page in another language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from indexes.showing import SHOWN, brief, table
from linker.commands.doubting import check_doubts, write_doubts
from linker.commands.page_files import dictionary_of, pages_of
from linker.crosslingual.pages.pages import split_languages
from linker.crosslingual.ranking.saved import LinkModel, check_writable, load, save
from linker.crosslingual.runs import linked, run_of
from linker.crosslingual.scoring.hapax import HapaxRules
from linker.crosslingual.task import NO_LINKS, Cardinality, Options, Passages, Task, TopicLearning, read_links
from linker.errors import InputError
from linker.files import check_outputs
from linker.logs import logger
from linker.progress import Progress, listening

Method = Literal["hapax", "dictionary", "pivot", "cascade", "encoder", "auto"]
LEARN = ("auto", "cascade")
# The methods that use an option; the options that are missing here are for all, or refused by the others.
USED_BY = {
    "--dictionary": ("dictionary", *LEARN),
    "--train": ("dictionary", *LEARN),
    "--encoder": ("encoder", "auto"),
    "--passages": ("encoder",),
    "--pivot": ("pivot",),
    "--pivot-mode": ("pivot",),
    "--weighting": ("dictionary",),
    "--no-identity": ("dictionary",),
    "--whole-dictionary": ("dictionary",),
    "--margin": ("dictionary", "encoder", "hapax", "pivot"),
    "--transliterate": ("hapax", "pivot"),
    "--ngrams": ("hapax", "pivot"),
    "--keep-edges": ("hapax", "pivot"),
}


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
    passages: Passages = "mean",
    weighting: Literal["idf", "binary", "tfidf-cosine"] = "idf",
    identity: bool = True,
    whole_dictionary: bool = False,
    margin: bool | None = None,
    transliterate: bool = False,
    ngrams: int = 0,
    keep_edges: bool = False,
    min_probability: float = 0.0,
    precision: float | None = None,
    expected_linked: float | None = None,
    self_train: bool | None = None,
    layout: bool = True,
    topics: TopicLearning = "variational",
    explain: bool = False,
    k: int = 5,
    one_to_one: bool = False,
    run_name: str = "linker",
    resume: bool = False,
    seed: int = 0,
    links: Cardinality | None = None,
    model: str | Path | None = None,
    save_model: str | Path | None = None,
    uncertain: str | Path | None = None,
    between: tuple[float, float] = (0.1, 0.9),
    progress: Progress | None = None,
) -> Links:
    """Link the pages of `source` to their counterparts in `target`: files or folders in two languages.

    The options are those of `linker link`. With `out`, the run is written there in six columns, with RUN.json beside
    it, and can be resumed. `save_model` keeps what was learned in a folder, which `model` uses again. `uncertain`:
    a file for the links whose probability is `between` two bounds, with both texts, for people to judge. Raises
    InputError where a file cannot be read, or the method lacks an input that it needs.
    """
    check_outputs(
        {"--out": out, "--uncertain": uncertain}, (source, target, *dictionary, train, pivot, pivot_links)
    )
    _check_saving(method, save_model)
    if uncertain:
        _check_learns(method, "--uncertain")
        check_doubts(Path(uncertain), between)
    with listening(progress):
        codes = split_languages(languages) if languages else (None, None)
        source_pages, target_pages = pages_of(source, codes[0]), pages_of(target, codes[1])
        pivot_pages = pages_of(pivot, None) if pivot else None
        known = read_links(Path(train), source_pages, target_pages) if train else NO_LINKS
        through = NO_LINKS
        if pivot_pages and pivot_links:
            through = read_links(Path(pivot_links), pivot_pages, target_pages)
        options = Options(
            weighting=weighting,
            identity=identity,
            whole_dictionary=whole_dictionary,
            margin=margin,
            passages=passages,
            pivot_mode=pivot_mode,
            hapax=HapaxRules(strip=not keep_edges, transliterate=transliterate, ngrams=ngrams),
            min_probability=min_probability,
            precision=precision,
            expected_linked=expected_linked,
            self_train=self_train,
            layout=layout,
            topics=topics,
            explain=explain,
            seed=seed,
            links=links,
        )
        task = Task(
            source_pages, target_pages, tuple(map(dictionary_of, dictionary)), known, pivot_pages, through,
            encoder, one_to_one, options, model=_model(model),
        )  # fmt: skip
        _warn_of_unused(task, method)
        path = None if out is None else Path(out)
        result = linked(task, method, path, k=k, name=run_name, resume=resume)
        if save_model and result.model:
            save(result.model(), Path(save_model))
        if uncertain:
            write_doubts(Path(uncertain), source_pages, target_pages, result.proposed, between)
    run = run_of(source_pages, target_pages, result.candidates)
    return Links(run, method, len(source_pages), len(target_pages), result.metadata)


def _check_saving(method: Method, folder: str | Path | None) -> None:
    """Raise InputError where a model could not be saved, before anything is learned."""
    if folder is None:
        return
    _check_learns(method, "--save-model")
    check_writable(Path(folder))


def _warn_of_unused(task: Task, method: Method) -> None:
    """Warn of what was given that the method does not use."""
    options, default = task.options, Options()
    given = {
        "--dictionary": bool(task.dictionaries),
        "--train": bool(len(task.train)),
        "--encoder": task.encoder is not None,
        "--passages": options.passages != default.passages,
        "--pivot": task.pivot is not None,
        "--pivot-mode": options.pivot_mode != default.pivot_mode,
        "--weighting": options.weighting != default.weighting,
        "--no-identity": not options.identity,
        "--whole-dictionary": options.whole_dictionary,
        "--margin": options.margin is not None,
        "--transliterate": options.hapax.transliterate,
        "--ngrams": options.hapax.ngrams > 0,
        "--keep-edges": not options.hapax.strip,
    }
    if unused := [option for option, is_given in given.items() if is_given and method not in USED_BY[option]]:
        logger.warning("the method %r does not use %s", method, ", ".join(unused))


def _check_learns(method: Method, flag: str) -> None:
    if method not in LEARN:
        raise InputError(
            f"{flag} is for the methods that learn, auto and cascade, not {method!r}: leave it out"
        )


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
