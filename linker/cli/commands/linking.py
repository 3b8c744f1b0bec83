"""`link`: which documents of one collection belong to the texts of another, in one language or two."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from indexes.showing import SHOWN, brief
from indexes.showing import table as shown_table
from linker.base.errors import InputError
from linker.base.files import check_outputs, write_atomically
from linker.base.logs import logger
from linker.base.options import options as options_of
from linker.base.options import takes
from linker.base.progress import listening
from linker.cli.commands.doubting import check_doubts, write_doubts, write_linked
from linker.cli.commands.given import paths
from linker.cli.commands.page_files import dictionary_of
from linker.cli.commands.sides import Side, known_links, same_language, side_of
from linker.cli.commands.together import Together, link_together
from linker.crosslingual.options import LEARN, LinkOptions, Options
from linker.crosslingual.pages.pages import split_languages
from linker.crosslingual.ranking.saved import LinkModel, check_writable, load, save
from linker.crosslingual.runs import explanations_path, holds_files_beside, linked, run_of, write_metadata
from linker.crosslingual.task import NO_LINKS, Task, read_links
from linker.evaluation.reading.trec import write_run
from linker.review.exporting.writing import PAIRS


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
        return f"<Links by {self.method}: {len(self)} of {self.pages} texts{': ' if first else ''}{first}>"

    def _repr_html_(self) -> str:
        rows = [(page, *next(iter(best.items()))) for page, best in list(self.run.items())[:SHOWN]]
        caption = f"{len(self):,} of {self.pages:,} texts linked, method {self.method}"
        return shown_table(rows, ("text", "counterpart", "score"), caption)


@takes(LinkOptions)
def link(options: LinkOptions) -> Links:
    """Link the texts of `source` to those of `target` that belong to them: files, folders or indexes.

    The options are those of `linker link`. With `out`, the run is written there in six columns, with RUN.json beside
    it, and across languages can be resumed; .csv, .xlsx and .jsonl hold both texts, too. `train`: files of known links.
    `save_model` keeps what was learned in a folder, which `model` uses again. `uncertain`:
    a file for the links whose probability is `between` two bounds, with both texts, for people to judge. `columns`
    says how tables are to be read. Raises
    InputError where a file cannot be read, or the method lacks an input that it needs.
    """
    o, method = options, options.method
    known_files, path = paths(o.train), None if o.out is None else Path(o.out)
    table = path is not None and path.suffix.lower() in PAIRS
    _check(o, table)
    with listening(o.progress):
        codes = split_languages(o.languages) if o.languages else (None, None)
        first = side_of(Path(o.source), codes[0], o.columns)
        second = side_of(Path(o.target), codes[1], o.columns, o.encoder)
        pairs = known_links(known_files, first.documents, second.documents)
        languages_only = o.dictionary or o.pivot or o.model or o.save_model or o.self_train
        if method == "auto" and not languages_only and same_language(first, second):
            if o.resume:
                raise InputError("`resume` continues a run across languages; leave it out")
            _warn_in_one_language(o)
            return _together(first, second, pairs, o, path)
        source_pages, target_pages = first.pages, second.pages
        pivot_pages = side_of(Path(o.pivot), None, o.columns).pages if o.pivot else None
        rows = [(source_pages.position[one], target_pages.position[other]) for one, other in pairs]
        known = np.array(rows, np.int64) if rows else NO_LINKS
        through = NO_LINKS
        if pivot_pages and o.pivot_links:
            through = read_links(Path(o.pivot_links), pivot_pages, target_pages)
        task = Task(
            source_pages, target_pages, tuple(map(dictionary_of, o.dictionary)), known, pivot_pages, through,
            o.encoder, o.one_to_one, o, model=_model(o.model),
        )  # fmt: skip
        _warn_of_unused(o)
        result = linked(task, method, None if table else path, k=o.k, name=o.run_name, resume=o.resume)
        if o.save_model and result.model:
            save(result.model(), Path(o.save_model))
        if o.uncertain:
            write_doubts(Path(o.uncertain), first, second, result.proposed, o.between)
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
    options: LinkOptions,
    path: Path | None,
) -> Links:
    """Link two collections of one language, and write what is to be written."""
    if options.explain and (path is None or not holds_files_beside(path)):
        raise InputError(f"`explain` writes a file beside the run, and {path} is not a regular file")
    answer = link_together(source, target, pairs, options)
    counts = len(source.documents), len(target.documents)
    found = Links(answer.run, "auto", *counts, answer.metadata, answer.none, answer.copies)
    if path and path.suffix.lower() in PAIRS:
        write_linked(path, found, source, target, probable=True)
    elif path:
        write_run(
            path,
            ((id_, list(of), list(of.values())) for id_, of in _decreasing(answer.run)),
            options.run_name,
        )
        write_metadata(path, answer.metadata)
    if path and options.explain:
        records = (_explained(id_, answer) for id_ in answer.none)
        write_atomically(explanations_path(path), b"".join(orjson.dumps(r) + b"\n" for r in records))
    if options.uncertain:
        write_doubts(Path(options.uncertain), source, target, answer.proposed, options.between)
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


def _check(options: LinkOptions, table: bool) -> None:
    """Raise InputError for options that contradict each other or cannot be written, before anything is read."""
    files = (options.source, options.target, *options.dictionary, *paths(options.train), options.pivot)
    check_outputs({"`out`": options.out, "`uncertain`": options.uncertain}, (*files, options.pivot_links))
    if options.one_to_one and options.links not in (None, "one-to-one"):
        raise InputError(f"`one_to_one` contradicts `links` {options.links}: leave one of them out")
    if table and (options.resume or options.explain):
        raise InputError(
            f"`resume` and `explain` write files beside a run: name one, not {options.out}, with `out`"
        )
    for name in ("save_model", "uncertain"):
        if getattr(options, name) is not None and options.method not in LEARN:
            raise InputError(
                f"`{name}` is for the methods that learn, auto and cascade, not {options.method!r}: leave it out"
            )
    if options.save_model is not None:
        check_writable(Path(options.save_model))
    if options.uncertain is not None:
        check_doubts(Path(options.uncertain), options.between)


def _warn_of_unused(options: LinkOptions) -> None:
    """Warn of options that the method does not use."""
    only = {option.name: option.about.only for option in options_of(LinkOptions)}
    if unused := [name for name in _changed(options) if only[name] and options.method not in only[name]]:
        logger.warning("the method %r does not use %s", options.method, _listed(unused))


def _warn_in_one_language(options: LinkOptions) -> None:
    """Warn of options that two collections of one language have no use for."""
    used = {"min_probability", "precision", "explain", "seed", "links"}
    scoring = {field.name for field in fields(Options)}
    if unused := [name for name in _changed(options) if name in scoring - used]:
        logger.warning(
            "both collections are in one language, where these options have no use: %s", _listed(unused)
        )


def _changed(options: LinkOptions) -> list[str]:
    """Return the names of the options that are not at their defaults."""
    return [
        option.name for option in options_of(LinkOptions) if getattr(options, option.name) != option.default
    ]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


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
