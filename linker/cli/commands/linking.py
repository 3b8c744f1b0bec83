"""`link`: which documents of one collection belong to the texts of another, in one language or two."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson

from indexes.showing import SHOWN, brief
from indexes.showing import table as shown_table
from linker.base.errors import InputError
from linker.base.files import check_outputs, write_atomically
from linker.base.logs import logger
from linker.base.progress import Progress, listening
from linker.cli.commands.doubting import check_doubts, write_doubts, write_linked
from linker.cli.commands.given import Paths, paths
from linker.cli.commands.page_files import dictionary_of
from linker.cli.commands.sides import Side, known_links, same_language, side_of
from linker.cli.commands.together import Together, Wishes, link_together
from linker.corpora import Columns
from linker.crosslingual.pages.pages import split_languages
from linker.crosslingual.ranking.saved import LinkModel, check_writable, load, save
from linker.crosslingual.runs import explanations_path, holds_files_beside, linked, run_of, write_metadata
from linker.crosslingual.scoring.hapax import HapaxRules
from linker.crosslingual.task import NO_LINKS, Cardinality, Options, Passages, Task, TopicLearning, read_links
from linker.evaluation.reading.trec import write_run
from linker.review.exporting.writing import PAIRS

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
    """The links of texts: `run` holds the targets of each linked text with their scores, best first.

    `pages` and `targets` count the texts on both sides, `metadata` says how the links were made. In one language,
    the scores are P(link), `none` holds P(none) of each text that was to be linked, and `copies` the near copies of its
    first target among the others. `evaluate` takes `run`.
    """

    run: Mapping[str, Mapping[str, float]]
    method: str
    pages: int
    targets: int
    metadata: Mapping[str, Any] = field(repr=False)
    none: Mapping[str, float] = field(default_factory=dict, repr=False)
    copies: Mapping[str, Sequence[str]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.run)

    def __repr__(self) -> str:
        first = brief([f"{page} → {next(iter(best))}" for page, best in self.run.items()], 3)
        return f"<Links by {self.method}: {len(self)} of {self.pages} pages{': ' if first else ''}{first}>"

    def _repr_html_(self) -> str:
        rows = [(page, *next(iter(best.items()))) for page, best in list(self.run.items())[:SHOWN]]
        caption = f"{len(self):,} of {self.pages:,} pages linked, method {self.method}"
        return shown_table(rows, ("page", "counterpart", "score"), caption)


def link(
    source: str | Path,
    target: str | Path,
    method: Method = "auto",
    out: str | Path | None = None,
    *,
    languages: str | None = None,
    dictionary: Sequence[str | Path] = (),
    train: Paths = (),
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
    columns: Columns | None = None,
    progress: Progress | None = None,
) -> Links:
    """Link the texts of `source` to those of `target` that belong to them: files, folders or indexes.

    The options are those of `linker link`. With `out`, the run is written there in six columns, with RUN.json beside
    it, and across languages can be resumed; .csv, .xlsx and .jsonl hold both texts, too. `train`: files of known links.
    `save_model` keeps what was learned in a folder, which `model` uses again. `uncertain`:
    a file for the links whose probability is `between` two bounds, with both texts, for people to judge. `columns`
    says how tables are to be read. Raises
    InputError where a file cannot be read, or the method lacks an input that it needs.
    """
    known_files = paths(train)
    check_outputs(
        {"--out": out, "--uncertain": uncertain},
        (source, target, *dictionary, *known_files, pivot, pivot_links),
    )
    path = None if out is None else Path(out)
    table = path is not None and path.suffix.lower() in PAIRS
    if one_to_one and links not in (None, "one-to-one"):
        raise InputError(f"--one-to-one contradicts --links {links}: leave one of them out")
    if table and (resume or explain):
        raise InputError(f"--resume and --explain write files beside a run: name one, not {path}, with --out")
    _check_saving(method, save_model)
    if uncertain:
        _check_learns(method, "--uncertain")
        check_doubts(Path(uncertain), between)
    with listening(progress):
        codes = split_languages(languages) if languages else (None, None)
        first = side_of(Path(source), codes[0], columns)
        second = side_of(Path(target), codes[1], columns, encoder)
        pairs = known_links(known_files, first.documents, second.documents)
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
        languages_only = dictionary or pivot or model or save_model or self_train
        if method == "auto" and not languages_only and same_language(first, second):
            if resume:
                raise InputError("--resume continues a run across languages; leave it out")
            _warn_in_one_language(options)
            cardinality = "one-to-one" if one_to_one else links
            wishes = Wishes(k, cardinality, min_probability, precision, encoder, seed, explain)
            return _together(first, second, pairs, wishes, path, uncertain, between, run_name)
        source_pages, target_pages = first.pages, second.pages
        pivot_pages = side_of(Path(pivot), None, columns).pages if pivot else None
        rows = [(source_pages.position[one], target_pages.position[other]) for one, other in pairs]
        known = np.array(rows, np.int64) if rows else NO_LINKS
        through = NO_LINKS
        if pivot_pages and pivot_links:
            through = read_links(Path(pivot_links), pivot_pages, target_pages)
        task = Task(
            source_pages, target_pages, tuple(map(dictionary_of, dictionary)), known, pivot_pages, through,
            encoder, one_to_one, options, model=_model(model),
        )  # fmt: skip
        _warn_of_unused(task, method)
        result = linked(task, method, None if table else path, k=k, name=run_name, resume=resume)
        if save_model and result.model:
            save(result.model(), Path(save_model))
        if uncertain:
            write_doubts(Path(uncertain), first, second, result.proposed, between)
    run = run_of(source_pages, target_pages, result.candidates)
    about = {"languages": [first.code, second.code], **result.metadata}
    found = Links(run, method, len(source_pages), len(target_pages), about)
    if table and path:
        write_linked(path, found, first, second, probable=method in LEARN)
    return found


def _together(
    source: Side,
    target: Side,
    pairs: Sequence[tuple[str, str]],
    wishes: Wishes,
    path: Path | None,
    uncertain: str | Path | None,
    between: tuple[float, float],
    name: str,
) -> Links:
    """Link two collections of one language, and write what is to be written."""
    if wishes.explain and (path is None or not holds_files_beside(path)):
        raise InputError(f"--explain writes a file beside the run, and {path} is not a regular file")
    answer = link_together(source, target, pairs, wishes)
    counts = len(source.documents), len(target.documents)
    found = Links(answer.run, "auto", *counts, answer.metadata, answer.none, answer.copies)
    if path and path.suffix.lower() in PAIRS:
        write_linked(path, found, source, target, probable=True)
    elif path:
        write_run(path, ((id_, list(of), list(of.values())) for id_, of in _decreasing(answer.run)), name)
        write_metadata(path, answer.metadata)
    if path and wishes.explain:
        records = (_explained(id_, answer) for id_ in answer.none)
        write_atomically(explanations_path(path), b"".join(orjson.dumps(r) + b"\n" for r in records))
    if uncertain:
        write_doubts(Path(uncertain), source, target, answer.proposed, between)
    return found


def _decreasing(run: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield a run with scores lowered as little as necessary to decrease: an evaluator orders equal ones by id."""
    for id_, of in run.items():
        last, lower = math.inf, {}
        for name, score in of.items():
            last = lower[name] = min(score, math.nextafter(last, -math.inf))
        yield id_, lower


def _explained(id_: str, answer: Together) -> dict[str, Any]:
    of = answer.run.get(id_, {})
    record: dict[str, Any] = {
        "id": id_,
        "link": next(iter(of), None),
        "no_link_probability": answer.none[id_],
    }
    if of:
        record |= {"probability": next(iter(of.values())), "matches": answer.matches[id_]}
    return record | ({"group": answer.copies[id_]} if id_ in answer.copies else {})


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


def _warn_in_one_language(options: Options) -> None:
    """Warn of options that two collections of one language have no use for."""
    used = ("min_probability", "precision", "explain", "seed", "links")
    changed = [f.name for f in fields(options) if getattr(options, f.name) != getattr(Options(), f.name)]
    if unused := [name.replace("_", "-") for name in changed if name not in used]:
        logger.warning(
            "both collections are in one language, where these options have no use: %s", ", ".join(unused)
        )


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
