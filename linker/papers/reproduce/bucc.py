"""BUCC 2015: its four systems on pages from `linker bucc prepare`, or on linked pages (methods A to D).

Reads, in the data folder or its subfolders: LANG.train.jsonl, LANG.test.jsonl, en.train.jsonl, en.test.jsonl and
qrels/LANG.{train,test}.txt, as `linker bucc prepare` writes them; otherwise hard/LANG.jsonl.gz, hard/en.jsonl.gz and
qrels; and dictionaries/LANG-en.tsv.gz next to either.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from indexes.arrays import normalised
from indexes.dtypes import Float32Array, Int64Array
from linker.base.errors import InputError
from linker.base.files import read_json
from linker.corpora.dictionaries import Dictionary, read_dictionary
from linker.crosslingual.methods import link
from linker.crosslingual.options import Options
from linker.crosslingual.pages.pages import Pages, read_pages
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.scoring.candidates import Candidates
from linker.crosslingual.scoring.dense import fit_lsi
from linker.crosslingual.scoring.products import DenseProduct
from linker.crosslingual.task import Task, read_links
from linker.evaluation.first_ranks import first_ranks, reciprocal_ranks, successes
from linker.papers.reproduce.cells import QUICK, Outcome, Study, System, fingerprint

PREPARED = "prepare.json"  # file in which `linker bucc prepare` stores the counts of its steps
COUNTS = ("linked both ways", "with text", "kept", "train", "test")
ANOTHER_DAY = "prepared as in the paper, but of another day's Wikipedia"
MEASURES = ("coverage", "MRR", "S@1", "S@5")
LANGUAGES = ("fr", "de", "zh", "ru", "tr")
PIVOTS = {"fr": "de", "de": "fr"}  # pivot languages; French for all others
VARIANT = "hard"  # linked-pages with pages cut until hapax legomena get the published score for French
WORDS = "the page's tf-idf vector, each word's weight shared among its translations; then the cosine"
TOPICS = "the published runs had a bug, by their authors' word, and stayed at .047 or less"
MATRIX = "the first step alone: latent vectors of a page, mapped to English ones by ridge regression"
COMPONENTS = 200  # dimensions of each latent space
PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # tried in the ridge regression; the vectors have length 1
LINKED = (
    "manual pages and their translations in place of Wikipedia's comparable pages, the `hard` set reduced until "
    "LINA.p's figures for French matched the published ones",
    "MUSE (small for Chinese) in place of the authors' dictionary",
    "every English page is a candidate",
)


@dataclass(frozen=True)
class LanguagePages:
    """The pages in a language, English pages and their links; `files`: the files they were read from."""

    code: str
    folder: Path
    files: tuple[Path, ...]
    official: bool
    dictionary: Path
    most: int | None  # maximum number of test pages to evaluate

    @cached_property
    def pages(self) -> tuple[Pages, Pages]:
        """The pages to link and the candidates: in the official data, those of the test half."""
        return self._pages("test")

    @cached_property
    def whole(self) -> tuple[Pages, Pages]:
        """The pages of both halves."""
        return self._joined() if self.official else self.pages

    def links(self, split: str, pages: tuple[Pages, Pages]) -> Int64Array:
        """Return the links of a half as rows of pages, int64 [l, 2]."""
        return read_links(self.folder / "qrels" / f"{self.code}.{split}.txt", *pages)

    def known(self) -> Dictionary:
        """Return the dictionary. Raises InputError if there is none."""
        if not self.dictionary.exists():
            raise InputError(
                f"there is no {self.dictionary.name} in a folder `dictionaries` next to the pages"
            )
        return read_dictionary(self.dictionary)

    def _pages(self, split: str) -> tuple[Pages, Pages]:
        if self.official:
            names = [f"{code}.{split}.jsonl" for code in (self.code, "en")]
        else:
            names = [f"{VARIANT}/{code}.jsonl.gz" for code in (self.code, "en")]
        first, second = (read_pages(self.folder / name) for name in names)
        return first, second

    def _joined(self) -> tuple[Pages, Pages]:
        halves = [self._pages(split) for split in ("train", "test")]
        first, second = (
            replace(one[0], ids=one[0].ids + one[1].ids, texts=one[0].texts + one[1].texts)
            for one in zip(*halves, strict=True)
        )
        return first, second


def studies(data: Path, work: Path, quick: bool) -> list[Study]:
    """Return a study per language. Raises InputError if the folder holds neither form of the data."""
    found = {one.code: one for one in _collections(data, QUICK if quick else None)}
    if not found:
        raise InputError(
            f"{data} holds no pages of BUCC 2015: expected LANG.test.jsonl, en.test.jsonl and qrels/LANG.test.txt, as "
            "`linker bucc prepare` writes them, or linked-pages"
        )
    order = sorted(found, key=lambda code: (*LANGUAGES, code).index(code))
    studies_ = [_study(found[code], found.get(PIVOTS.get(code, "fr")), quick) for code in order]
    return [*_prepared([found[code] for code in order]), *studies_]


def _prepared(found: Sequence[LanguagePages]) -> list[Study]:
    """Return the counts of the preparation, as in the paper's table 1, if `linker bucc prepare` has stored them."""
    files = {one.code: one.folder / PREPARED for one in found if (one.folder / PREPARED).exists()}
    if not files:
        return []

    def row(code: str) -> System:
        counts = read_json(files[code])
        why = "" if counts.get("first_stop") else "without first sentences; the paper's rule is --first-stop"
        return System(
            f"{code}, en", lambda seed: Outcome({c: counts.get(c.replace(" ", "_")) for c in COUNTS}), why
        )

    title = "Prepared pages: pairs linked both ways, and those of similar lengths"
    stamp = fingerprint(files.values())
    return [Study("prepared", [(title, COUNTS)], [row(code) for code in files], [ANOTHER_DAY], made_of=stamp)]


def _collections(data: Path, most: int | None) -> Iterator[LanguagePages]:
    for folder in (data, *sorted(path for path in data.iterdir() if path.is_dir())):
        for path in sorted((folder / "qrels").glob("??.test.txt")):
            code = path.name.partition(".")[0]
            official = folder / f"{code}.test.jsonl"
            linked = folder / VARIANT / f"{code}.jsonl.gz"
            dictionary = next(
                (p for p in (folder, data, data.parent) if (p / "dictionaries").is_dir()), folder
            )
            words = dictionary / "dictionaries" / f"{code}-en.tsv.gz"
            for pages, is_official in ((official, True), (linked, False)):
                if pages.exists():
                    files = (path, pages, *([words] if words.exists() else []))
                    yield LanguagePages(code, folder, files, is_official, words, most)
                    break


def _study(one: LanguagePages, pivot: LanguagePages | None, quick: bool) -> Study:
    """Return the study of a language: the papers' systems and, last, the systems that learn from training links."""
    systems = [
        System("LINA.p", _run(one, lambda: ("hapax", Task(*one.pages)))),
        System("LINA.cl", _run(one, lambda: ("pivot", _pivoted(one, pivot))), _links_of(pivot)),
        System(
            "LINA.cl, unsupported pairs kept",
            _run(one, lambda: ("pivot", replace(_pivoted(one, pivot), options=Options(pivot_mode="boost")))),
            "support through the pivot only adds to a score",
        ),
        System("CCNUNLP", _run(one, lambda: ("dictionary", _by_words(one, "binary")))),
        System(
            "translated queries", _run(one, lambda: ("dictionary", _by_words(one, "tfidf-cosine"))), WORDS
        ),
    ]
    systems.append(System("AUT, transformation matrix", _run_matrix(one), MATRIX))
    for name, topics in (("variational topics", "variational"), ("Gibbs sampling", "gibbs")):
        run = _run(one, lambda topics=topics: ("cascade", _learning(one, topics)))  # type: ignore[misc]
        systems.append(System(f"AUT, {name}", run, TOPICS))
    links = one.links("test", one.pages)[: one.most]
    title = f"{one.code} → en: {len(links):,} pages"
    reasons = [ANOTHER_DAY] if one.official else LINKED
    stamp = fingerprint(one.files, quick, pivot.code if pivot else "")
    return Study(one.code, [(title, MEASURES)], systems, reasons, made_of=stamp)


def _run(one: LanguagePages, task_of: Callable[[], tuple[str, Task]]) -> Callable[[int], Outcome]:
    def run(seed: int) -> Outcome:
        method, task = task_of()
        gold = one.links("test", (task.source, task.target))[: one.most]
        return Outcome(judged(link(task, method).candidates, gold))

    return run


def _run_matrix(one: LanguagePages) -> Callable[[int], Outcome]:
    def run(seed: int) -> Outcome:
        task = _learning(one, "variational")
        gold = one.links("test", (task.source, task.target))[: one.most]
        return Outcome(judged(by_matrix(task), gold))

    return run


def by_matrix(task: Task) -> Candidates:
    """Rank targets by AUT's transformation matrix, learned from the task's links (methods C, step 1, `ridge`).

    The penalty is the one with the highest MRR on a tenth of the links, which are held out.
    """
    evidence = AllEvidence(task.source, task.target)
    source, target = (_latent(w, task.train[:, i]) for i, w in enumerate(evidence.weights))
    dev = np.arange(len(task.train)) % 10 == 0
    pages, linked = task.train[dev].T

    def held_out(penalty: float) -> float:
        scores = normalised(source[pages] @ ridge(source, target, task.train[~dev], penalty)) @ target.T
        right = scores[np.arange(len(pages)), linked]
        return float(reciprocal_ranks((scores >= right[:, None]).sum(axis=1).astype(np.float64)).mean())

    matrix = ridge(source, target, task.train, max(PENALTIES, key=held_out))
    return task.nearest(DenseProduct(normalised(source @ matrix), target.T)).candidates


def _latent(weights: sp.csr_array, linked: Int64Array) -> Float32Array:
    """Return pages in the latent space of the `linked` ones: rows of length 1, float32 [n, k]."""
    known = weights[linked]
    nothing = sp.csr_array(np.zeros((len(linked), 0), dtype=np.float32))
    return fit_lsi(known, nothing, COMPONENTS).fold_source(weights)


def ridge(source: Float32Array, target: Float32Array, links: Int64Array, penalty: float) -> Float32Array:
    """Return W [k, j] that minimises ‖A W − B‖² + penalty · ‖W‖², for A, B: the linked rows of [n, k], [m, j]."""
    a, b = source[links[:, 0]], target[links[:, 1]]
    found: Float32Array = np.linalg.solve(a.T @ a + penalty * np.eye(a.shape[1], dtype=np.float32), a.T @ b)
    return found


def judged(candidates: Candidates, gold: Int64Array) -> dict[str, float]:
    """Return the task's measures over the linked pages of `gold`, int64 [l, 2], from each page's first five targets.

    A page without an answer counts 0 in all measures, so a run without answers gets only zeros.
    """
    if not candidates.targets.shape[1]:
        return dict.fromkeys(MEASURES, 0.0)
    ranked = candidates.cut(5).targets[gold[:, 0]]
    ranks = first_ranks(ranked == gold[:, 1:2])
    figures = (ranked[:, 0] >= 0, reciprocal_ranks(ranks), successes(ranks, 1), successes(ranks, 5))
    return {name: float(values.mean()) for name, values in zip(MEASURES, figures, strict=True)}


def _pivoted(one: LanguagePages, pivot: LanguagePages | None) -> Task:
    """Return the task with all pages and links of a pivot language, which the paper had. Raises InputError."""
    if pivot is None or pivot.folder != one.folder or one.official:
        raise InputError("it needs a pivot language whose links lead to the same English pages")
    source, target = one.pages
    third = pivot.pages[0]
    links = np.concatenate([pivot.links(split, (third, target)) for split in ("train", "test")])
    return Task(source, target, pivot=third, pivot_links=links)


def _links_of(pivot: LanguagePages | None) -> str:
    return f"every link of the pivot, {pivot.code}, is known, as there" if pivot else ""


def _by_words(one: LanguagePages, weighting: str) -> Task:
    options = Options(weighting=weighting, margin=False)  # type: ignore[arg-type]
    return Task(*one.pages, dictionaries=(one.known(),), options=options)


def _learning(one: LanguagePages, topics: str) -> Task:
    """Return the task with the training half, whose links are known."""
    options = Options(topics=topics)  # type: ignore[arg-type]
    return Task(*one.whole, train=one.links("train", one.whole), options=options)
