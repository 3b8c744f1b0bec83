"""A retrieval data set for the AST benchmark: rows, links per split, BM25's rankings and the figures."""

import dataclasses
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.support.common import kept, shared_data
from benchmarks.support.links import measures, reciprocal_ranks
from indexes.text.bm25 import Bm25Index
from linker.training.batches import Pairs
from linker.training.config import DataConfig, OutputConfig, TrainConfig, TrainingConfig
from linker.training.retrieval import dev_sample, mine_negatives
from linker.training.run import read_pairs

Ranking = tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]
DEPTH, BLOCK, DEV_DOCUMENTS = 100, 256, 3000


@dataclass(frozen=True)
class Case:
    """Rows of texts and documents refer to `pairs`, which holds the training links."""

    name: str
    data: DataConfig
    pairs: Pairs
    dev: Pairs
    links: dict[str, list[tuple[int, int]]]
    linked: dict[str, list[int]]  # texts of a split, in the order of each ranking
    bm25: dict[str, Ranking]

    def linked_documents(self, split: str) -> npt.NDArray[np.int64]:
        """Return the rows of a split's linked documents, ascending."""
        return np.array(sorted({d for _, d in self.links[split]}), dtype=np.int64)

    def figures(self, split: str, rows: npt.NDArray[np.int64]) -> dict[str, float]:
        """Return MRR and Success@1, @5 of rankings [texts, k]; documents not found count 0."""
        own: dict[int, set[int]] = {}
        for text, document in self.links[split]:
            own.setdefault(text, set()).add(document)
        return measures(reciprocal_ranks(rows, [own[text] for text in self.linked[split]]))

    def negatives(self) -> list[list[int]]:
        """Return BM25's best unlinked documents of each training text."""
        return mine_negatives(self.pairs, 50)


@functools.cache
def read_case(name: str, work: Path) -> Case:
    """Read a set of the shared data; BM25's rankings are cached in `work`."""
    folder = shared_data() / name
    data = DataConfig(
        queries=folder / "queries.jsonl.gz", documents=folder / "corpus.jsonl.gz",
        train=_distinct(folder / "qrels/train.tsv", work), dev=_distinct(folder / "qrels/dev.tsv", work),
        word_vectors=str(shared_data() / "word-vectors-en"), lsa_dim=172,
    )  # fmt: skip
    whole = TrainingConfig(dev_documents=1 << 30)
    pairs, dev = read_pairs(TrainConfig(data, OutputConfig(work), training=whole))
    tested = dataclasses.replace(data, dev=_distinct(folder / "qrels/test.tsv", work))
    _, test = read_pairs(TrainConfig(tested, OutputConfig(work), training=whole))
    assert dev is not None
    assert test is not None
    links = {"dev": sorted(dev.links), "test": sorted(test.links)}
    linked = {split: sorted({text for text, _ in found}) for split, found in links.items()}
    bm25 = _bm25(pairs, linked, work)
    return Case(name, data, pairs, dev_sample(dev, DEV_DOCUMENTS), links, linked, bm25)


def _distinct(path: Path, work: Path) -> Path:
    """Return the judgements without repeated lines: one set has a line twice."""
    work.mkdir(parents=True, exist_ok=True)
    copy = work / path.name
    copy.write_text("".join(f"{line}\n" for line in dict.fromkeys(path.read_text().splitlines())))
    return copy


def _bm25(pairs: Pairs, linked: dict[str, list[int]], work: Path) -> dict[str, Ranking]:
    def made(split: str) -> dict[str, Any]:
        index = Bm25Index()
        index.add([str(row) for row in range(len(pairs.documents))], list(pairs.documents))
        rows, scores = index.search_rows([pairs.texts[text] for text in linked[split]], DEPTH)
        index.close()
        return {"rows": rows, "scores": scores}

    found = {split: kept(work / f"bm25-{split}.npz", functools.partial(made, split)) for split in linked}
    return {split: (of["rows"], of["scores"]) for split, of in found.items()}


def rank_dense(texts: npt.NDArray[np.float32], documents: npt.NDArray[np.float32], k: int) -> Ranking:
    """Return the top k documents for each text by inner product; ties are in row order."""
    parts = [best(texts[i : i + BLOCK] @ documents.T, k) for i in range(0, len(texts), BLOCK)]
    return np.concatenate([rows for rows, _ in parts]), np.concatenate([scores for _, scores in parts])


def best(scores: npt.NDArray[np.float32], k: int) -> Ranking:
    """Return the best k columns of each row and their scores."""
    rows = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return rows, np.take_along_axis(scores, rows, axis=1)
