"""More than two languages: links through a third language are evidence for direct ones, and pages form clusters.

Each run is a mass function over the counterparts of a page: the probability left over is ignorance. The probability
of a path de – en – fr is the product of its two links'. Dempster's (1968) rule of combination joins direct links and
paths: without conflict, this is the noisy-or 1 − (1 − p)(1 − q); evidence for another counterpart lowers both.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy.sparse as sp

from indexes.dtypes import Float64Array
from linker.crosslingual.scoring.candidates import DECIMALS, hashes

EDGE = 1e-4  # minimum ignorance per page, so that no evidence is certain
LEAST = 1e-3  # minimum probability of a link that is kept
Pair = tuple[str, str]
Page = tuple[str, str]  # language and id
Scores = Mapping[str, Mapping[str, float]]  # source page → target page → probability


@dataclass(frozen=True, eq=False)
class Network:
    """Pages of several languages (`ids`), and P(link), CSR [n, m] by language pair, in one direction only."""

    ids: Mapping[str, tuple[str, ...]]
    links: Mapping[Pair, sp.csr_array]

    def between(self, source: str, target: str) -> sp.csr_array | None:
        """Return the probabilities of links between two languages, [n, m], or None if they were never linked."""
        if (source, target) in self.links:
            return self.links[source, target]
        return sp.csr_array(self.links[target, source].T) if (target, source) in self.links else None


@dataclass(frozen=True, slots=True)
class Counterparts:
    """Counterparts, at most one per language (`pages`: language → id), with their weakest link's probability."""

    pages: Mapping[str, str]
    probability: float


def network(runs: Iterable[tuple[Pair, Scores]], known: Iterable[tuple[Pair, Scores]] = ()) -> Network:
    """Return the network of runs; if two runs have the same languages, the higher probability counts.

    A link in `known` is certain, and rules out all other links of its two pages in these languages.
    """
    entries: dict[Pair, dict[Pair, float]] = {}
    for pair, scores in runs:
        links, turned = _of_pair(entries, pair)
        for s, t, p in _links(scores, turned):
            links[s, t] = max(p, links.get((s, t), 0.0))
    for pair, scores in known:
        links, turned = _of_pair(entries, pair)
        sure = [(s, t) for s, t, p in _links(scores, turned) if p > 0]
        sources, targets = {s for s, _ in sure}, {t for _, t in sure}
        for s, t in [link for link in links if link[0] in sources or link[1] in targets]:
            del links[s, t]
        links.update(dict.fromkeys(sure, 1.0))
    pages: dict[str, dict[str, None]] = {}
    for (source, target), links in entries.items():
        for s, t in sorted(links):
            pages.setdefault(source, {})[s] = None
            pages.setdefault(target, {})[t] = None
    ids = {language: tuple(sorted(names)) for language, names in pages.items()}
    return Network(
        ids, {pair: _matrix(links, ids[pair[0]], ids[pair[1]]) for pair, links in entries.items() if links}
    )


def add_paths(given: Network) -> Network:
    """Return the network with each pair's links joined with the paths through every third language.

    Pairs that were never linked are composed. All paths use the links as given, so nothing is counted twice.
    """
    links = {}
    for source, target in combinations(given.ids, 2):
        pair = (target, source) if (target, source) in given.links else (source, target)
        forward, backward = _join(given, *pair), _join(given, *pair[::-1])
        if forward is not None and backward is not None:
            # A link has to hold in both directions.
            both = sp.csr_array(forward.minimum(sp.csr_array(backward.T)))
            both.data[both.data < LEAST] = 0
            both.eliminate_zeros()
            links[pair] = both
    return Network(given.ids, links)


def clusters(found: Network, least: float) -> list[Counterparts]:
    """Return the clusters formed by links with a probability of at least `least`, most certain cluster first.

    Links are taken in order of probability, ties by a hash of the ids; a link that would give a cluster two pages in
    one language is left out.
    """
    member: dict[Page, int] = {}
    groups: dict[int, dict[str, str]] = {}
    weakest: dict[int, float] = {}
    for p, one, other in _in_order(found, least):
        for page in (one, other):
            if page not in member:
                member[page] = len(member)
                groups[member[page]], weakest[member[page]] = {page[0]: page[1]}, 1.0
        a, b = member[one], member[other]
        if groups[a].keys() & groups[b].keys():
            continue
        groups[a] |= groups[b]
        weakest[a] = p  # links come in descending order of probability
        for page in groups[b].items():
            member[page] = a
        del groups[b]
    joined = [Counterparts(pages, weakest[i]) for i, pages in groups.items() if len(pages) > 1]
    return sorted(joined, key=lambda c: (-c.probability, sorted(c.pages.items())))


def _in_order(found: Network, least: float) -> Iterable[tuple[float, Page, Page]]:
    entries = []
    for (source, target), matrix in found.links.items():
        links = sp.coo_array(matrix)
        for row, column, p in zip(links.row.tolist(), links.col.tolist(), links.data.tolist(), strict=True):
            if p >= least:
                entries.append((p, (source, found.ids[source][row]), (target, found.ids[target][column])))
    ties = hashes([f"{one}{other}" for _, one, other in entries]).tolist()
    order = sorted(range(len(entries)), key=lambda i: (-round(entries[i][0], DECIMALS), ties[i]))
    return [entries[i] for i in order]


def masses(probabilities: sp.csr_array) -> sp.csr_array:
    """Return the matrix [n, m] with row sums below 1: the best links keep their values, the others get the rest."""
    matrix = sp.csr_array(probabilities, copy=True).astype(np.float64)
    for begin, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        values = matrix.data[begin:end]
        order = np.argsort(-values, kind="stable")
        before = np.concatenate(([0.0], np.cumsum(values[order])[:-1]))
        values[order] = np.clip(values[order], 0, np.maximum(1 - EDGE - before, 0))
    matrix.eliminate_zeros()
    return matrix


def combine(first: sp.csr_array, second: sp.csr_array) -> sp.csr_array:
    """Return two mass functions joined by Dempster's rule: [n, m], row sums below 1, like the arguments'.

    m(b) ∝ p(b) q(b) + p(b) (1 − Σq) + (1 − Σp) q(b), divided by one minus the mass of pairs that contradict each other.
    """
    p, q = (np.asarray(m.sum(axis=1), np.float64).ravel() for m in (first, second))
    agreeing = sp.csr_array(first.multiply(second))
    both = agreeing + _scale(first, 1 - q) + _scale(second, 1 - p)
    conflict = p * q - np.asarray(agreeing.sum(axis=1), np.float64).ravel()
    return _scale(sp.csr_array(both), 1 / (1 - conflict))


def _join(given: Network, source: str, target: str) -> sp.csr_array | None:
    """Return the direct links of two languages joined with paths via third languages: masses by page, [n, m]."""
    direct = given.between(source, target)
    evidence = [] if direct is None else [masses(direct)]
    for third in given.ids:
        if third not in (source, target):
            first, second = given.between(source, third), given.between(third, target)
            if first is not None and second is not None:
                evidence.append(masses(sp.csr_array(masses(first) @ masses(second))))
    if not evidence:
        return None
    joined = evidence[0]
    for more in evidence[1:]:
        joined = combine(joined, more)
    return joined


def _scale(matrix: sp.csr_array, factors: Float64Array) -> sp.csr_array:
    data = matrix.data * np.repeat(factors, np.diff(matrix.indptr))
    return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _of_pair(entries: dict[Pair, dict[Pair, float]], pair: Pair) -> tuple[dict[Pair, float], bool]:
    """Return the links of two languages, and whether they are stored in the other direction."""
    turned = pair[::-1] in entries
    return entries.setdefault(pair[::-1] if turned else pair, {}), turned


def _links(scores: Scores, turned: bool) -> Iterable[tuple[str, str, float]]:
    for source, targets in scores.items():
        for target, p in targets.items():
            yield (target, source, p) if turned else (source, target, p)


def _matrix(links: Mapping[Pair, float], source: Sequence[str], target: Sequence[str]) -> sp.csr_array:
    rows, columns = ({id_: i for i, id_ in enumerate(ids)} for ids in (source, target))
    where = ([rows[s] for s, _ in links], [columns[t] for _, t in links])
    return sp.csr_array((np.array(list(links.values()), np.float64), where), shape=(len(source), len(target)))
