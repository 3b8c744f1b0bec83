"""Linking the texts of two sides, in one language or two: the steps of `link` between reading and writing tables."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from indexes.showing import SHOWN, brief
from indexes.showing import table as shown_table
from linker.base.errors import InputError
from linker.base.files import write_atomically
from linker.base.logs import logger
from linker.base.options import options as options_of
from linker.corpora import Columns
from linker.corpora.guessing import check_names
from linker.corpora.reading import check_exists
from linker.crosslingual.options import LEARN, LinkOptions, Options
from linker.crosslingual.pages.pages import dictionary_of, split_languages
from linker.crosslingual.ranking.model import LinkModel, load
from linker.crosslingual.runs import (
    PROBABLE,
    count,
    explanations_path,
    holds_files_beside,
    link_and_write,
    run_of,
    write_metadata,
)
from linker.crosslingual.sides import Side, is_index, same_language, side_of
from linker.crosslingual.task import NO_LINKS, Task, read_links
from linker.crosslingual.together import Together, link_together
from linker.engine.evidence import Span
from linker.evaluation.reading.trec import write_run

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Links:
    """The links of texts: `run` holds the targets of each linked text with their scores, best first.

    `texts` and `targets` count the texts on both sides, `metadata` describes how the links were made. In one
    language, the scores are P(link), `none` holds P(none) for each text to be linked, and `copies` the near copies of
    its first target among its other targets. `passages`: start and end, in a text's first target (linked or not), of
    the sentence that the text is about. `evaluate` takes `run`.
    """

    run: Mapping[str, Mapping[str, float]]
    method: str
    texts: int
    targets: int
    metadata: Mapping[str, Any] = field(repr=False)
    none: Mapping[str, float] = field(default_factory=dict, repr=False)
    copies: Mapping[str, Sequence[str]] = field(default_factory=dict, repr=False)
    passages: Mapping[str, Span | None] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.run)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of texts: `linked` (more probably than not, if scores are probabilities) and `linked_any`."""
        return count((next(iter(of.values())) for of in self.run.values()), self.method)

    @property
    def summary(self) -> str:
        """The counts as words."""
        if self.method not in LEARN:
            return f"{len(self):,} of {self.texts:,} texts linked"
        linked, some = self.counts.values()
        return f"{linked:,} of {self.texts:,} texts linked with P(link) ≥ {PROBABLE:g}, {some:,} with any"

    def __repr__(self) -> str:
        first = brief([f"{page} → {next(iter(best))}" for page, best in self.run.items()], 3)
        return f"<Links by {self.method}: {len(self)} of {self.texts} texts{': ' if first else ''}{first}>"

    def _repr_html_(self) -> str:
        rows = [(page, *next(iter(best.items()))) for page, best in list(self.run.items())[:SHOWN]]
        caption = f"{self.summary}, method {self.method}"
        return shown_table(rows, ("text", "counterpart", "score"), caption)


@dataclass(frozen=True, eq=False, slots=True)
class LinkOutcome:
    """The links; the best document of each text, linked or not, with its probability; and the learned model, if any."""

    links: Links
    proposed: Sequence[tuple[str, str, float]]
    model: Callable[[], LinkModel] | None = None


def sides_of(options: LinkOptions) -> tuple[Side, Side]:
    """Read both sides. Raises the same InputErrors as `side_of`, before anything is read if a side is missing."""
    files = [path for path in map(Path, (options.source, options.target)) if not is_index(path)]
    for path in files:
        check_exists(path)
    check_names(files, options.columns or Columns())
    codes = split_languages(options.languages) if options.languages else (None, None)
    source = side_of(Path(options.source), codes[0], options.columns)
    return source, side_of(Path(options.target), codes[1], options.columns, options.encoder)


def link_sides(
    source: Side, target: Side, pairs: Pairs, options: LinkOptions, path: Path | None = None
) -> LinkOutcome:
    """Link the texts of `source` to documents of `target`, given known links (`pairs`), and write the run to `path`.

    The options that name files of sides or of known links are ignored. Raises InputError if a file cannot be read or
    written, or the method lacks an input that it needs.
    """
    o = replace(options, links=options.cardinality)
    if o.method == "auto" and not (o.dictionary or o.pivot) and same_language(source, target):
        across = {"model": o.model, "save_model": o.save_model, "self_train": o.self_train}
        if asked := [name for name, value in across.items() if value]:
            logger.warning(
                "both collections are in one language; because of %s, they are linked as if they were in two, without "
                "an index and the ranker for one language",
                _join(asked),
            )
        elif o.resume:
            raise InputError("`resume` continues a run across languages; leave it out")
        else:
            _warn_in_one_language(o)
            return _link_in_one_language(source, target, pairs, o, path)
    pages, others = source.pages, target.pages
    pivot_pages = side_of(Path(o.pivot), None, o.columns).pages if o.pivot else None
    rows = [(pages.position[one], others.position[other]) for one, other in pairs]
    through = NO_LINKS
    if pivot_pages and o.pivot_links:
        through = read_links(Path(o.pivot_links), pivot_pages, others)
    task = Task(
        pages, others, tuple(map(dictionary_of, o.dictionary)), np.array(rows, np.int64) if rows else NO_LINKS,
        pivot_pages, through, o.encoder, o, model=_model(o.model),
    )  # fmt: skip
    _warn_of_unused(o)
    result = link_and_write(task, o.method, path, k=o.k, name=o.run_name, resume=o.resume)
    about = {"languages": [pages.language.code, others.language.code], **result.metadata}
    run = run_of(pages, others, result.candidates)
    find = result.passage if path is None or o.uncertain else None
    passages = {one: find(one) for one, *_ in result.proposed} if find else {}
    links = Links(run, o.method, len(pages), len(others), about, passages=passages)
    return LinkOutcome(links, result.proposed, result.model)


def _link_in_one_language(
    source: Side, target: Side, pairs: Pairs, options: LinkOptions, path: Path | None
) -> LinkOutcome:
    if options.explain and (path is None or not holds_files_beside(path)):
        raise InputError(f"`explain` writes a file next to the run, and {path} is not a regular file")
    wanted = path is None or options.explain or options.uncertain is not None
    answer = link_together(source, target, pairs, options, wanted)
    counts = len(source.documents), len(target.documents)
    passages = {id_: passage for id_, (_, passage) in answer.evidence.items()}
    links = Links(answer.run, "auto", *counts, answer.metadata, answer.none, answer.copies, passages)
    if path:
        topics = ((id_, list(of), list(of.values())) for id_, of in _decreasing(answer.run))
        write_run(path, topics, options.run_name)
        write_metadata(path, {**links.metadata, **links.counts})
    if path and options.explain:
        lines = (orjson.dumps(record) + b"\n" for record in _explanations(answer))
        write_atomically(explanations_path(path), b"".join(lines))
    return LinkOutcome(links, answer.proposed)


def _decreasing(run: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield a run whose scores are lowered just enough to be strictly decreasing: evaluators order ties by id."""
    for id_, of in run.items():
        last, lower = math.inf, {}
        for name, score in of.items():
            last = lower[name] = min(score, math.nextafter(last, -math.inf))
        yield id_, lower


def _explanations(answer: Together) -> Iterator[dict[str, Any]]:
    """Yield the record of each text: a first document below the threshold is its `candidate`, not its `link`."""
    firsts = {id_: (document, p) for id_, document, p in answer.proposed}
    for id_, none in answer.none.items():
        record: dict[str, Any] = {"id": id_, "link": None, "no_link_probability": none}
        if id_ in firsts:
            document, p = firsts[id_]
            record["link" if id_ in answer.run else "candidate"] = document
            record |= {"probability": p, "matches": answer.evidence[id_][0]}
        yield record | ({"group": answer.copies[id_]} if id_ in answer.copies else {})


def _warn_of_unused(options: LinkOptions) -> None:
    only = {option.name: option.about.only for option in options_of(LinkOptions)}
    if unused := [name for name in _changes(options) if only[name] and options.method not in only[name]]:
        logger.warning("the method %r does not use %s", options.method, _join(unused))


def _warn_in_one_language(options: LinkOptions) -> None:
    """Warn of options that have no effect on two collections in one language."""
    used = {"min_probability", "precision", "expected_linked", "explain", "seed", "links"}
    scoring = {field.name for field in fields(Options)}
    if unused := [name for name in _changes(options) if name in scoring - used]:
        logger.warning(
            "both collections are in one language, so these options have no effect: %s", _join(unused)
        )


def _changes(options: LinkOptions) -> list[str]:
    return [
        option.name for option in options_of(LinkOptions) if getattr(options, option.name) != option.default
    ]


def _join(names: Sequence[str]) -> str:
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
