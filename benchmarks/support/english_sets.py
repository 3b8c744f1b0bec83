"""The English sets of the shared data as token ids, for one star that learns from all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.support import rank_data
from benchmarks.support.ast_data import Ranking
from benchmarks.support.common import kept, shared_data
from benchmarks.support.links import reciprocal_ranks
from indexes.interface import Document
from indexes.text.bm25 import Bm25Index
from linker.corpora import Query
from linker.encoders.tokens import load_tokenizer

SETS = ("tweets2claims", "statements2articles", "descriptions", "bbc-news")
MORE = ("news-topics",)  # headlines and stories to learn from, not used for evaluation
VECTORS = "word-vectors-en"
LENGTH, DEPTH, BLOCK = 2048, 100, 512
Ids = npt.NDArray[np.int32]
Links = list[tuple[int, int]]


@dataclass(frozen=True)
class Part:
    """A set: texts, documents and links (rows of both); the rows of the judged texts, and BM25's ranking for each."""

    name: str
    texts: list[Ids]
    documents: list[Ids]
    links: Links
    judged: list[int]
    bm25: Ranking

    def half(self, part: str) -> Links:
        """Return all links ("all"), or the links of half of the texts ("first", "second")."""
        wanted = {"all": (0, 1), "first": (0,), "second": (1,)}[part]
        return [(t, d) for t, d in self.links if t * 2654435761 % 2**32 % 997 % 2 in wanted]

    def reciprocal(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the reciprocal rank of each judged text's best document in rankings [texts, k], or 0."""
        own: dict[int, set[int]] = {}
        for text, document in self.links:
            own.setdefault(text, set()).add(document)
        return reciprocal_ranks(rows, [own[text] for text in self.judged])


@cache
def tokenizer() -> Any:
    """Return the tokenizer of the word vectors."""
    return load_tokenizer(shared_data() / VECTORS / "tokenizer.json")


def read(name: str, work: Path) -> Part:
    """Read a set; its ids and BM25's rankings are cached in `work`.

    All its linked texts are judged; for statements, only dev and test texts.
    """
    found = kept(work / f"{name}.npz", lambda: _arrays(name))
    texts, documents = (np.split(found[k], found[f"{k}_ends"][:-1]) for k in ("texts", "documents"))
    links = [(t, d) for t, d in found["links"].tolist()]
    return Part(name, texts, documents, links, found["judged"].tolist(), (found["rows"], found["scores"]))


def _arrays(name: str) -> dict[str, npt.NDArray[Any]]:
    documents, judged = _raw(name)
    row = {d.id: n for n, d in enumerate(documents)}
    texts: list[str] = []
    links: Links = []
    searched: list[int] = []
    for split, part in judged.items():
        for query in part.queries:
            relevant = [row[d] for d, grade in part.qrels[query.id].items() if grade > 0]
            links += [(len(texts), d) for d in relevant]
            if name in SETS and (name, split) != ("statements2articles", "train"):
                searched.append(len(texts))
            texts.append(query.text)
    rows, scores = _by_bm25([d.full_text for d in documents], [texts[t] for t in searched])
    arrays = {
        "links": np.array(links),
        "judged": np.array(searched, dtype=np.int64),
        "rows": rows,
        "scores": scores,
    }
    for key, strings in (("texts", texts), ("documents", [d.full_text for d in documents])):
        ids = tokenizer().encode_batch(strings, LENGTH)
        arrays[key] = np.array([i for text in ids for i in text], dtype=np.int32)
        arrays[f"{key}_ends"] = np.cumsum([len(text) for text in ids])
    return arrays


def _raw(name: str) -> tuple[list[Document], dict[str, rank_data.Judged]]:
    if name in SETS:
        return rank_data.documents_for(name), rank_data.links(name)
    stories = rank_data.documents_of(shared_data() / name / "corpus.jsonl.gz")
    stories = [d for d in stories if d.title and len(d.text) > 40]  # those with a title and some text
    judged = rank_data.Judged([Query(d.id, d.title) for d in stories], {d.id: {d.id: 1.0} for d in stories})
    return [Document(d.id, d.text) for d in stories], {"train": judged}


def _by_bm25(documents: Sequence[str], texts: Sequence[str]) -> Ranking:
    index = Bm25Index()
    index.add([str(row) for row in range(len(documents))], list(documents))
    found = [index.search_rows(texts[i : i + BLOCK], DEPTH) for i in range(0, len(texts), BLOCK)]
    index.close()
    none = np.zeros((0, DEPTH))
    rows, scores = (
        (np.concatenate([none, *parts]) for parts in zip(*found, strict=True)) if found else (none, none)
    )
    return rows.astype(np.int64), scores.astype(np.float32)
