"""Do the probabilities of `auto` and `cascade` hold if pages lack a counterpart, or if known links are wrong?

The targets of 0, 50 and 90 % of the test pages are removed; the training links stay. In `prose`, names and code are
removed (see `prose`). `noise`: a fifth of the training links lead to random other targets. The rankers
that `auto` starts from were pooled over the *other* languages. Word pairs and latent space are learned once per fold
and used at every share of orphans; nothing else is shared, and the statistics of words still count the absent pages.

A row has, for one language, variant, system and share of orphans: the estimated share; ECE over ten bins of equal
width and its value by chance if all probabilities are right (`floor`); the precision of links with P ≥ .9; the F1 of
links with P ≥ .5, at the threshold with the highest expected F1, and at the best threshold; for a promised precision
of .9: links kept, and their precision.

    python -m benchmarks.open_world [--languages tr,zh] [--variants hard,prose] [--rows FILE]
"""

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from benchmarks.auto_link import LANGUAGES, dictionaries_of, links_of, pages_of
from benchmarks.pool_rankers import rankers_of
from benchmarks.support.absent import calibration_error
from benchmarks.support.harness import ROWS, Arguments, Commas, Results, benchmark
from indexes.dtypes import BoolArray, Int64Array
from linker.crosslingual.options import Options
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.ranking.auto import NOTHING, Solution, describe_unlinked
from linker.crosslingual.ranking.cascade import CascadeEvidence
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.folds import divisions_of
from linker.crosslingual.ranking.interface import Learned
from linker.crosslingual.ranking.learning import out_of_fold
from linker.scoring.ranking.fitting import learn_ranker

ORPHANS = (0.0, 0.5, 0.9)
SYSTEMS = ("auto: both", "auto: both, noise", "cascade: links")
NOISE = 0.2
PRECISION = 0.9
DRAWS = 200


EDGES = re.compile(r"^[(\[\"'«»“”„‘’]+|[)\]\"'«»“”„‘’.,;:!?…。，、；：！？（）]+$")
LATIN = re.compile(r"[A-Za-z]")
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
OTHER_SCRIPTS = frozenset({"ru", "zh"})


def remembering(evidence: AllEvidence) -> AllEvidence:
    """Make the evidence cache what it learned from links, and return it."""
    learn, taught = evidence.learn, dict[bytes, Learned]()

    def cached(links: Int64Array) -> Learned:
        key = links.tobytes()
        if key not in taught:
            taught[key] = learn(links)
        return taught[key]

    vars(evidence)["learn"] = cached
    return evidence


def prose(source: Pages, target: Pages, known: Iterable[str]) -> tuple[Pages, Pages]:
    """Return both collections reduced to their words.

    Tokens with digits, symbols or inner capitals are removed, and so are names and identifiers: Latin words in texts
    of another script, and words that occur in both languages but are not among the `known` words of the source
    language. Line breaks and punctuation other than full stops are removed too.
    """
    words = [[_words(text) for text in pages.texts] for pages in (source, target)]
    ours, theirs = ({w.casefold() for page in pages for w in page} for pages in words)
    names = (ours & theirs) - {word.casefold() for word in known}
    if source.language.code in OTHER_SCRIPTS:
        names |= {word for word in ours if LATIN.search(word)}
    return _joined(source, words[0], names), _joined(target, words[1], names)


def _words(text: str) -> list[str]:
    """Return the words of a text, each with the full stop that ends its sentence, if one does."""
    words = []
    for token in text.split():
        bare = EDGES.sub("", token)
        if any("\u4e00" <= c <= "\u9fff" for c in bare):
            words += re.findall(r"[\u4e00-\u9fff]+", bare)
        elif WORD.fullmatch(bare) and (bare[1:] == bare[1:].lower()):
            words.append(bare)
    return words


def _joined(pages: Pages, words: list[list[str]], names: set[str]) -> Pages:
    texts = (" ".join(w for w in page if w.casefold() not in names) for page in words)
    return replace(pages, texts=tuple(texts))


@cache
def pages(variant: str, code: str) -> tuple[Pages, Pages]:
    source, target = pages_of("hard", code), pages_of("hard", "en")
    if variant == "hard":
        return source, target
    return prose(source, target, [word for d in dictionaries_of(code) for word, _ in d.pairs])


def solutions(
    system: str, variant: str, code: str, seed: int
) -> Iterator[tuple[float, Solution, Int64Array]]:
    """Yield the share of orphans, the solution, and the remaining test links: int64 [l, 2]."""
    source, target = pages(variant, code)
    known, test = (links_of(code, split, source, target) for split in ("train", "test"))
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(test))
    if system.endswith("noise"):
        wrong = rng.random(len(known)) < NOISE
        others = np.setdiff1d(np.arange(len(target)), np.concatenate([known[:, 1], test[:, 1]]))
        known[wrong, 1] = rng.choice(others, int(wrong.sum()), replace=False)
    words = tuple(pair for d in dictionaries_of(code) for pair in d.pairs)
    kind = CascadeEvidence if system.startswith("cascade") else AllEvidence
    evidence = remembering(kind(source, target, words if "both" in system else (), rankers=rankers_of(code)))
    unlinked = np.setdiff1d(np.arange(len(source)), known[:, 0])
    divisions = divisions_of(known)
    for share in ORPHANS:
        orphans = order[: round(share * len(test))]
        absent = test[orphans, 1]
        parts = out_of_fold(evidence, known, unlinked, absent=absent, divisions=divisions)
        taken = np.concatenate([known[:, 1], absent])
        lists, learned = describe_unlinked(evidence, known, NOTHING, unlinked, taken)
        fitted = learn_ranker(lists, parts, evidence.start("links"), divisions=divisions)
        yield share, Solution(lists, learned, fitted, NOTHING), np.delete(test, orphans, axis=0)


def judge(solution: Solution, links: Int64Array) -> dict[str, Any]:
    """Return the measures of a solution; `links` int64 [l, 2] are the links that can be found."""
    rows, targets, p = solution.best()
    gold = dict(links.tolist())
    right = np.array([gold.get(row) == target for row, target in zip(rows.tolist(), targets, strict=True)])
    linked = np.array([row in gold for row in rows.tolist()])
    threshold, record = solution.fitted.least_probability(Options().min_probability, PRECISION, None)
    rng = np.random.default_rng(0)
    chance = [calibration_error(p, rng.random(len(p)) < p) for _ in range(DRAWS)]
    return {
        "pages": len(rows),
        "linked_share": _round(linked.mean()),
        "estimated_share": _round(solution.fitted.share),
        "contradicted": len(solution.fitted.contradicted),
        "success_1": _round(right[linked].mean()),
        "ece": _round(calibration_error(p, right)),
        "floor": _round(np.mean(chance)),
        "orphans_mean": _round(p[~linked].mean()) if not linked.all() else None,
        "sure": int((p >= PRECISION).sum()),
        "sure_precision": _round(right[p >= PRECISION].mean()) if (p >= PRECISION).any() else None,
        "f1": _round(f1(p >= 0.5, right, linked)),
        "chosen_f1": _round(f1(p >= record["best_f1"]["threshold"] - 5e-5, right, linked)),
        "best_f1": _round(max(f1(p >= t, right, linked) for t in np.unique(p))),
        "promised": int((p >= threshold).sum()),
        "promised_precision": _round(right[p >= threshold].mean()) if (p >= threshold).any() else None,
    }


def f1(kept: BoolArray, right: BoolArray, linked: BoolArray) -> float:
    """Return the harmonic mean of precision and recall of the links that `kept` [n] marks."""
    return 2 * float((right & kept).sum()) / max(int(kept.sum() + linked.sum()), 1)


def _round(value: float | np.floating[Any]) -> float:
    return round(float(value), 4)


@benchmark(
    languages=Commas(LANGUAGES),
    variants=Commas(("hard", "prose")),
    systems=[*SYSTEMS],
    seeds=Commas((0,)),
    rows=ROWS,
)
def linked(options: Arguments) -> Results:
    for code, variant, system in product(options.languages, options.variants, options.systems):
        if variant == "prose" and system != "auto: both":
            continue
        axes = {"variant": [variant], "language": [code], "system": [system], "seed": options.seeds}
        for name in options.rows.missing(**axes):
            start, found = time.process_time(), []
            for share, solution, links in solutions(system, variant, code, name["seed"]):
                found.append({**name, "orphans": share, **judge(solution, links)})
                found[-1]["cpu_s"] = round(time.process_time() - start, 1)
            options.rows.keep(*found)
    return {"rows": options.rows}
