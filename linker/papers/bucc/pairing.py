"""Which pages in two languages link to each other; a name may be a title, an id or a redirect."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from linker.papers.bucc.raw_pages import name_of

Pair = tuple[str, str]
SHOWN = 10  # maximum number of ambiguous pairs listed


@dataclass(frozen=True, slots=True)
class Linked:
    """The linked pages of one language by id: their titles and the names that they link to; redirects by name.

    `by_id`: whether a name may also be an id. Links in a dump name only titles, and many titles are numbers.
    """

    titles: Mapping[str, str]
    links: Mapping[str, tuple[str, ...]]
    redirects: Mapping[str, str] = field(default_factory=dict)
    by_id: bool = True


@dataclass(frozen=True, slots=True)
class IdPairs:
    """Pairs of ids that link to each other, in the order of the source pages.

    `unresolved`: number of links that name none of the other language's linked pages; `ambiguous_names`: names that are
    the title of one page and the title or id of another; `left_out`: pairs of pages that have several counterparts
    because of such names.
    """

    pairs: tuple[Pair, ...]
    unresolved: int
    ambiguous_names: tuple[str, ...]
    left_out: tuple[Pair, ...]


def pair_pages(source: Linked, target: Linked) -> IdPairs:
    """Return the pairs that link to each other in both directions.

    A name may match several pages: it can be the title of one and the id of another. The link back then decides; of
    several pages that link back, the page named by its title wins. If more than one remains, there is no pair.
    """
    sources, targets = _Names(source), _Names(target)
    forward, backward = _edges(source, targets), _edges(target, sources)
    by_titles = {(a, b): titled + backward[b, a] for (a, b), titled in forward.items() if (b, a) in backward}
    best_of: dict[tuple[int, str], int] = {}
    for (a, b), titles in by_titles.items():
        for end in ((0, a), (1, b)):
            best_of[end] = max(best_of.get(end, 0), titles)
    best = [(a, b) for (a, b), titles in by_titles.items() if titles == best_of[0, a] == best_of[1, b]]
    counts = Counter(end for a, b in best for end in ((0, a), (1, b)))
    clear = {(a, b) for a, b in best if counts[0, a] == counts[1, b] == 1}
    paired = {end for a, b in clear for end in ((0, a), (1, b))}
    left_out = [(a, b) for a, b in by_titles if (0, a) not in paired and (1, b) not in paired]
    return IdPairs(
        tuple(pair for pair in best if pair in clear),
        sources.unresolved + targets.unresolved,
        tuple(dict.fromkeys((*targets.ambiguous, *sources.ambiguous))),
        tuple(left_out),
    )


class _Names:
    def __init__(self, linked: Linked) -> None:
        self._titles: dict[str, list[str]] = defaultdict(list)
        for page, title in linked.titles.items():
            if title:
                self._titles[name_of(title)].append(page)
        self._ids = {name_of(page): page for page in linked.titles} if linked.by_id else {}
        self._redirects = linked.redirects
        self.unresolved = 0
        self.ambiguous: list[str] = []

    def pages(self, link: str) -> Iterator[tuple[str, bool]]:
        """Yield the pages that a link may mean, each with whether the link names its title."""
        name = name_of(link)
        titled = self._by_title(name)
        ids = [self._ids[name]] if name in self._ids and self._ids[name] not in titled else []
        if not titled and not ids:
            self.unresolved += 1
        elif len(titled) + len(ids) > 1:
            self.ambiguous.append(name)
        yield from ((page, True) for page in titled)
        yield from ((page, False) for page in ids)

    def _by_title(self, name: str) -> list[str]:
        """Return the pages of a title, a redirect, or a title with a lower-case first letter."""
        for form in (name, name[:1].upper() + name[1:]):
            if found := self._titles.get(form) or self._titles.get(self._redirects.get(form, ""), []):
                return found
        return []


def _edges(linked: Linked, others: _Names) -> dict[Pair, int]:
    """Return every pair of a page and a page that it may link to: 1 if the link names the title, 0 if the id."""
    edges: dict[Pair, int] = {}
    for page, names in linked.links.items():
        for other, titled in (found for name in names for found in others.pages(name)):
            edges[page, other] = max(edges.get((page, other), 0), int(titled))
    return edges


def described(pairs: Iterable[Pair]) -> str:
    """Return the first few pairs as text for a message."""
    named = [f"{a} – {b}" for a, b in pairs]
    more = f" and {len(named) - SHOWN:,} more" if len(named) > SHOWN else ""
    return ", ".join(named[:SHOWN]) + more
