"""Two synthetic languages with a known dictionary: pages share topics, partners share most of their words."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from linker.crosslingual.pages.languages import language
from linker.crosslingual.pages.pages import Pages
from tests.helpers import write_json_lines

LETTERS = "abcdefghijklmnoprstuvz"


def word(number: int, language: str) -> str:
    """Return a word of five letters; the two languages have no words in common."""
    digits = [number // 22**i % 22 for i in range(3)]
    return ("q" if language == "source" else "w") + "".join(LETTERS[d] for d in digits) + "ax"


@dataclass(frozen=True)
class Twin:
    source: Pages
    target: Pages
    links: npt.NDArray[np.int64]  # [n, 2], all true links; targets are shuffled
    dictionary: tuple[tuple[str, str], ...]

    def gold(self) -> dict[str, str]:
        return {self.source.ids[s]: self.target.ids[t] for s, t in self.links.tolist()}


def write_pages(
    path: Path, pages: Pages, rows: Iterable[int] | None = None, other: Mapping[str, str] | None = None
) -> Path:
    """Write pages, or some rows of them, as JSON lines; `other` has texts that replace those of some ids."""
    texts = dict(zip(pages.ids, pages.texts, strict=True)) | dict(other or {})
    chosen = range(len(pages)) if rows is None else rows
    return write_json_lines(path, ({"_id": pages.ids[row], "text": texts[pages.ids[row]]} for row in chosen))


def twin(pages: int = 120, extra: int = 20, vocabulary: int = 600, length: int = 60, seed: int = 0) -> Twin:
    """Make `pages` linked pages and `extra` targets without a partner; a partner keeps 60 % of the words."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, vocabulary + 1)
    share /= share.sum()
    place = rng.permutation(pages + extra)
    source, target = [], [""] * (pages + extra)
    for page in range(pages + extra):
        own = rng.choice(vocabulary, length, p=share)
        if page < pages:
            source.append(" ".join(word(n, "source") for n in own))
        kept = np.where(rng.random(length) < 0.6, own, rng.choice(vocabulary, length, p=share))
        target[place[page]] = " ".join(word(n, "target") for n in rng.permutation(kept))
    links = np.stack([np.arange(pages), place[:pages]], axis=1).astype(np.int64)
    pairs = tuple((word(n, "source"), word(n, "target")) for n in range(vocabulary))
    return Twin(
        Pages(tuple(f"s{i}" for i in range(pages)), tuple(source), language("und")),
        Pages(tuple(f"t{i}" for i in range(pages + extra)), tuple(target), language("und")),
        links,
        pairs,
    )
