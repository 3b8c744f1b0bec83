"""Millions of short documents with vectors: a tenth are real texts, the others are copies of them with changed words.

The real texts are one-line descriptions of Debian packages (if `apt-cache` knows any), statements, claims and
sentences from news, truncated to LONGEST words. Their vectors are mean word vectors in 128 dimensions; for 256, the
text's vector is concatenated with that of its surroundings (two texts before and after it). A copy has a share
CHANGED of its words replaced by words from other texts, and its vector is its text's plus MIXED times another text's,
plus noise of length NOISE. Shards are made one at a time, each from its own seed, so that a stopped run can continue
with the next.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from benchmarks.support.common import shared_data
from benchmarks.support.direct import read
from benchmarks.support.meanvectors import mean_vectors
from indexes.arrays import normalised
from indexes.interface import Matrix
from linker.corpora import read_queries

LONGEST, SHORTEST = 24, 3  # words
REAL = 10  # one document in this many
CHANGED, MIXED, NOISE = 0.3, 1 / 3, 0.25
BLOCK, AROUND = 10_000, 2
NEWS = ("statements2articles", "bbc-news", "news-topics", "tweets2claims")


def real_texts(held_out: Iterable[str] = ()) -> Iterator[str]:
    """Yield the real texts, each once, without the held-out queries."""
    seen = set(held_out)
    for text in _all_texts():
        words = text.split()
        if len(words) < SHORTEST:
            continue
        cut = " ".join(words[:LONGEST])
        if text not in seen and cut not in seen:
            seen.add(cut)
            yield cut


def _all_texts() -> Iterator[str]:
    if shutil.which("apt-cache"):
        found = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True)
        yield from re.findall(r"^Description(?:-en)?: (.+)$", found.stdout, re.MULTILINE)
    for folder in ("statements2articles", "tweets2claims"):
        yield from (query.text for query in read_queries(shared_data() / folder / "queries.jsonl.gz"))
    for folder in NEWS:
        for _, text, _ in read(shared_data() / folder / "corpus.jsonl.gz"):
            yield from re.split(r"(?<=[.!?])\s+", text)


def prepare(work: Path, most: int, held_out: Iterable[str] = ()) -> tuple[Path, Path]:
    """Write at most `most` real texts, one per line, and their vectors (.npy, float32 [n, 256]); return the files."""
    texts, vectors = work / f"real-{most}.txt", work / f"real-{most}.npy"
    if not vectors.exists():
        lines = [text for text, _ in zip(real_texts(held_out), range(most), strict=False)]
        texts.write_text("\n".join(lines), encoding="utf-8")
        single, partial = mean_vectors(lines), vectors.with_suffix(".part.npy")
        shape = (len(single), 2 * single.shape[1])
        wide: Any = np.lib.format.open_memmap(partial, mode="w+", dtype=np.float32, shape=shape)
        for low in range(0, len(single), BLOCK):
            first = max(0, low - AROUND)
            part = with_surroundings(single[first : low + BLOCK + AROUND])
            wide[low : low + BLOCK] = part[low - first :][:BLOCK]
        wide.flush()
        partial.rename(vectors)
    return texts, vectors


def with_surroundings(vectors: Matrix) -> Matrix:
    """Return float32 [n, 2 d], of length 1: each vector of [n, d] next to the mean of its neighbours."""
    around = np.array(vectors)
    for shift in range(1, AROUND + 1):
        around[shift:] += vectors[:-shift]
        around[:-shift] += vectors[shift:]
    return normalised(np.hstack([vectors, normalised(around)]))


def changed(words: list[str], pool: list[str], rng: np.random.Generator) -> str:
    """Return a text of these words, with a share CHANGED of them (at least one) replaced by words from the pool."""
    count = max(1, round(CHANGED * len(words)))
    copy = list(words)
    for place, other in zip(
        rng.integers(len(copy), size=count).tolist(),
        rng.integers(len(pool), size=count).tolist(),
        strict=True,
    ):
        copy[place] = pool[other]
    return " ".join(copy)


def perturbed(vectors: Matrix, others: Matrix, rng: np.random.Generator) -> Matrix:
    """Return the vectors of changed texts, float32 [n, d]; `others` [n, d] are mixed in."""
    noise = rng.standard_normal(vectors.shape, dtype=np.float32)
    noise *= NOISE / np.sqrt(vectors.shape[1])
    return normalised(vectors + np.float32(MIXED) * others + noise)


class Shard:
    """The documents of shard `number` of `shards`: each `shards`-th real text, then altered copies; `size` in all."""

    def __init__(self, number: int, shards: int, size: int, texts: list[str], vectors: Matrix) -> None:
        """`vectors`: of the real texts, float32 [n, d]."""
        self._number, self._size, self._texts, self._vectors = number, size, texts, vectors
        self._own = np.arange(number, len(texts), shards)[: size // REAL]

    def blocks(self, words: bool = True) -> Iterator[tuple[list[str], list[str], Matrix]]:
        """Yield ids, texts and vectors of documents, BLOCK at a time; without `words`, each text is its id."""
        rng = np.random.default_rng([self._number, self._size])
        pool = " ".join(self._texts[:: 1 + len(self._texts) // 50_000]).split() if words else []
        for low in range(0, self._size, BLOCK):
            numbers = np.arange(low, min(low + BLOCK, self._size))
            ids = [f"{self._number}-{n}" for n in numbers.tolist()]
            real = self._own[numbers[numbers < len(self._own)]]
            copied, mixed = rng.integers(len(self._texts), size=(2, len(numbers) - len(real)))
            vectors = np.vstack(
                [self._vectors[real], perturbed(self._vectors[copied], self._vectors[mixed], rng)]
            )
            if not words:
                yield ids, ids, vectors
                continue
            made = [changed(self._texts[n].split(), pool, rng) for n in copied.tolist()]
            yield ids, [*(self._texts[n] for n in real.tolist()), *made], vectors


def write(shard: Shard, size: int, dim: int, folder: Path, words: bool = True) -> tuple[Path, Path, Path]:
    """Write a shard's documents as JSON lines, its vectors (.npy) and its ids; return the files."""
    corpus, matrix, ids = (folder / f"shard.{kind}" for kind in ("jsonl", "npy", "ids"))
    with corpus.open("wb") as documents, ids.open("w") as names, matrix.open("wb") as rows:
        head = {"descr": "<f4", "fortran_order": False, "shape": (size, dim)}
        np.lib.format.write_array_header_1_0(rows, head)  # a memory map of the whole file would be resident
        for found, texts, vectors in shard.blocks(words):
            lines = (orjson.dumps({"_id": i, "text": t}) for i, t in zip(found, texts, strict=True))
            documents.write(b"\n".join(lines) + b"\n")
            names.write("\n".join(found) + "\n")
            rows.write(np.ascontiguousarray(vectors, dtype="<f4").data)
    return corpus, matrix, ids
