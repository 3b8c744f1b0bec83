"""Does linker name the sentence that a post is about?

Three sets have known answers. `digests`: a statement, and a text that joins parts of five articles, ten sentences
each, in random order: the article linked to it, from which the authors of the set removed the sentences that repeat the
statement, and the four articles nearest to that one. `sentences`: of forty sentences (the STS benchmark, English), the
one that people judged to have the same meaning (at least 4 of 5). `half the words`: the same, but the query lacks a
random half of the words that both share. A passage is right if it begins in the right part. Settings were chosen on
`dev`; `test` is judged. The baselines take the best sentence by BM25 (with the idf of the text's own sentences), the
best by an encoder's cosine, or the first sentence.

    python -m benchmarks.passages [--split test] [--count 300] [--encoder '']
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support import group_data, rank_data
from benchmarks.support.common import records, shared_data
from benchmarks.support.harness import WORK, Arguments, Results, benchmark
from benchmarks.support.links import interval
from indexes.anywhere import AnyCollection
from indexes.text.analysis import Analysis
from indexes.text.marking import words_in
from linker.encoders.loading import load_encoder
from linker.engine.building import create
from linker.engine.engine import Engine
from linker.engine.evidence import Span, evidence, sentences

ARTICLES, PARTS, LENGTH = 8000, 5, 10  # articles in the index; parts of a digest; sentences per part
PAGE, SAME = 40, 4.0
K1, B = 1.2, 0.75
Case = tuple[str, str, Span]  # query, text, and the span of the passage to find in the text
Chooser = Callable[[str, str], Span | None]


def engine_of(folder: Path) -> Engine:
    if not folder.exists():
        create(folder, encoder="none", language="english")
        articles = group_data.articles()
        Engine.open(folder).add(articles[:ARTICLES])
    return Engine.open(folder)


def digests(engine: Engine, split: str, count: int) -> Iterator[Case]:
    part, rng = rank_data.links("statements2articles")[split], np.random.default_rng(0)
    texts = {d.id: d.full_text for d in group_data.articles()}
    for query in part.queries[:count]:
        right = min(part.qrels[query.id])
        found = engine.search(texts[right][:400], PARTS + 1, stored_ranker=False).hits[0].ids
        parts = [cut(texts[id_], rng) for id_ in (right, *[i for i in found if i != right][: PARTS - 1])]
        order = rng.permutation(len(parts)).tolist()
        start = sum(len(parts[i]) + 1 for i in order[: order.index(0)])
        yield query.text, "\n".join(parts[i] for i in order), (start, start + len(parts[0]))


def cut(text: str, rng: np.random.Generator) -> str:
    spans = list(sentences(text))
    first = int(rng.integers(0, max(1, len(spans) - LENGTH + 1)))
    some = spans[first : first + LENGTH]
    return text[some[0][0] : some[-1][1]]


def paraphrases(engine: Engine, split: str, count: int, *, halved: bool) -> Iterator[Case]:
    pairs = [*records(shared_data() / "sts" / f"stsb-en-{split}.jsonl.gz")]
    analysis, rng = Analysis(engine.collection.manifest.analysis), np.random.default_rng(0)
    cases = []
    for begin in range(0, len(pairs) - PAGE + 1, PAGE):
        lines = [" ".join(pair["text2"].split()) for pair in pairs[begin : begin + PAGE]]
        start = 0
        for line, pair in zip(lines, pairs[begin : begin + PAGE], strict=True):
            query = lacking(pair["text1"], line, analysis, rng) if halved else pair["text1"]
            if pair["score"] >= SAME and pair["text1"].strip() != line:
                cases.append((query, "\n".join(lines), (start, start + len(line))))
            start += len(line) + 1
    yield from cases[:count]


def lacking(query: str, line: str, analysis: Analysis, rng: np.random.Generator) -> str:
    """Return a query without a random half of the words that it shares with a line."""
    shared = {term for *_, terms in words_in(analysis, line) for term in terms}
    hit = [(a, b) for a, b, terms in words_in(analysis, query) if terms & shared]
    for i in sorted(rng.permutation(len(hit))[: len(hit) // 2].tolist(), reverse=True):
        query = query[: hit[i][0]] + query[hit[i][1] :]
    return query


def by_bm25(collection: AnyCollection) -> Chooser:
    analysis = Analysis(collection.manifest.analysis)

    def choose(query: str, text: str) -> Span | None:
        terms, spans = set(analysis.query_terms(query)), list(sentences(text))
        words = [[t for *_, of in words_in(analysis, text[a:b]) for t in of] for a, b in spans]
        counts = [Counter(t for t in of if t in terms) for of in words]
        df, mean = Counter(t for of in counts for t in of), sum(map(len, words)) / len(words)
        scores = [
            sum(
                math.log(1 + (len(spans) - df[t] + 0.5) / (df[t] + 0.5))
                * f
                / (f + K1 * (1 - B + B * len(of) / mean))
                for t, f in frequencies.items()
            )
            for frequencies, of in zip(counts, words, strict=True)
        ]
        return spans[int(np.argmax(scores))] if max(scores) > 0 else None

    return choose


def by_encoder(name: str) -> Chooser:
    encoder = load_encoder(name)
    known: dict[str, Any] = {}

    def choose(query: str, text: str) -> Span | None:
        spans = list(sentences(text))
        if text not in known:
            known.clear()
            known[text] = encoder.encode([text[a:b] for a, b in spans])
        return spans[int(np.argmax(known[text] @ encoder.encode([query])[0]))]

    return choose


def right(choose: Chooser, cases: list[Case]) -> np.ndarray[Any, Any]:
    found = [choose(query, text) for query, text, _ in cases]
    return np.array(
        [s is not None and a <= s[0] < b for s, (*_, (a, b)) in zip(found, cases, strict=True)], float
    )


def chance(cases: list[Case]) -> float:
    shares = [
        (sum(a <= s[0] < b for s in spans), len(spans))
        for _, text, (a, b) in cases
        for spans in (list(sentences(text)),)
    ]
    return round(float(np.mean([hit / count for hit, count in shares])), 4)


@benchmark(seed=0, work=WORK, split="test", count=300, encoder="minilm")
def measured(options: Arguments) -> Results:
    engine = engine_of(options.work / "articles")
    sets = {
        "digests": list(digests(engine, options.split, options.count)),
        "sentences": list(paraphrases(engine, options.split, options.count, halved=False)),
        "half the words": list(paraphrases(engine, options.split, options.count, halved=True)),
    }
    systems: dict[str, Chooser] = {
        "linker": lambda query, text: evidence(engine.collection, query, text).passage,
        "first sentence": lambda query, text: next(sentences(text)),
        "BM25 sentence": by_bm25(engine.collection),
    }
    if options.encoder:
        systems["encoder's sentence"] = by_encoder(options.encoder)
    results = dict[str, Any]()
    for name, cases in sets.items():
        found = {system: right(choose, cases) for system, choose in systems.items()}
        rows: dict[str, Any] = {"cases": len(cases), "chance": chance(cases)}
        for system, hits in found.items():
            rows[system] = {"right": round(float(hits.mean()), 4)}
            if system != "linker":
                lead = found["linker"] - hits
                rows[system]["lead of linker"] = [round(float(lead.mean()), 4), *interval(lead)]
        results[name] = rows
    return {"split": options.split, **results}
