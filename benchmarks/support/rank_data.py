"""The sets on which rankers are trained and measured, as indexes with a forward index, and their candidates."""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.support.common import ROOT, shared_data
from indexes.dtypes import BoolArray, Float64Array
from indexes.interface import Document
from linker.base.config import load
from linker.corpora import Query, read_corpus, read_queries
from linker.encoders import folder
from linker.encoders.configs import PRESETS
from linker.engine.building import BuildOptions, build, create
from linker.engine.engine import Engine
from linker.scoring.ranking.candidates import Gatherer, Pool, PoolSettings
from linker.scoring.ranking.learning import gather_batches, relevant_rows
from linker.training.config import EncoderConfig, TrainConfig
from linker.training.run import build_encoder, run

STATEMENTS = "statements2articles"
SPLITS = ("train", "dev", "test")
SEED = 0  # of the untrained star's weights
ASIDE = 4  # one training query in this many is set aside for the encoder


@dataclass(frozen=True)
class Judged:
    """Queries of a split and their judgements."""

    queries: list[Query]
    qrels: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Gathered:
    """The candidates of a split, their relevance (bool [n, c]), and the reciprocal ranks of the hybrid [n]."""

    pool: Pool
    relevant: BoolArray
    hybrid: Float64Array

    def sample(self, count: int) -> Gathered:
        """Return this many random queries, always the same ones; or all, if there are no more."""
        chosen = np.random.default_rng(0).permutation(len(self.relevant))[:count]
        pool = Pool(self.pool.rows[chosen], self.pool.features[chosen], self.pool.names)
        return Gathered(pool, self.relevant[chosen], self.hybrid[chosen])


def links(name: str) -> dict[str, Judged]:
    """Return the judged queries of a set by split; `bbc-news` and `descriptions` have no training split."""
    data = shared_data() / name
    if name == "bbc-news":
        titled = [Query(d.id, d.title) for d in documents_of(_corpus(name)) if d.title]
        return {"test": Judged(titled, {q.id: {q.id: 1.0} for q in titled})}
    queries = read_queries(data / "queries.jsonl.gz")
    found = {}
    for path in (data / "qrels" / f"{split}.tsv" for split in SPLITS):
        if path.exists():
            qrels = read_qrels(path)
            found[path.stem] = Judged([q for q in queries if q.id in qrels], qrels)
    return found


def read_qrels(path: Path) -> dict[str, dict[str, float]]:
    """Return the grades of a file in BEIR's format: query → document → grade."""
    found: dict[str, dict[str, float]] = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        found.setdefault(query, {})[document] = float(grade)
    return found


def _corpus(name: str) -> Path:
    shared = shared_data()
    return (
        shared / "linked-pages" / "masked" / "en.jsonl.gz"
        if name == "descriptions"
        else shared / name / "corpus.jsonl.gz"
    )


def documents_for(name: str) -> list[Document]:
    """Return the documents of a set; for `bbc-news`, without the headlines, which are its queries."""
    found = documents_of(_corpus(name))
    return [Document(d.id, d.text) for d in found] if name == "bbc-news" else found


def documents_of(path: Path) -> list[Document]:
    """Return the documents of a corpus; all lines of the shared data are usable."""
    return [record for record in read_corpus(path) if isinstance(record, Document)]


def aside(query: Query) -> bool:
    """Return whether the links of a training query are for the encoder, not for the ranker."""
    return zlib.crc32(query.id.encode()) % ASIDE == 0


def rest(judged: Judged) -> Judged:
    """Return the training queries whose links are for the ranker."""
    return Judged([q for q in judged.queries if not aside(q)], judged.qrels)


def bag(work: Path) -> Path:
    """Return the bag trained on the statements' links that are set aside; it is trained if missing."""
    model = work / "bag"
    if not model.exists():
        lines = (shared_data() / STATEMENTS / "qrels" / "train.tsv").read_text(encoding="utf-8").splitlines()
        queries = {q.id: q for q in links(STATEMENTS)["train"].queries}
        part = [line for line in lines[1:] if aside(queries[line.split("\t")[0]])]
        (work / "aside.tsv").write_text("\n".join([lines[0], *part]) + "\n", encoding="utf-8")
        run(training(STATEMENTS, model, train=work / "aside.tsv"))
    return model


def star(work: Path) -> Path:
    """Return an untrained star over the bag's vectors."""
    model = work / "star"
    if not model.exists():
        mean = folder.load(bag(work))
        vectors = mean.module.get_submodule("embedding").get_parameter("weight").detach().numpy()
        settings = EncoderConfig(PRESETS["recommended"], mean.max_length)
        folder.save(build_encoder(settings, mean.tokenizer, vectors, SEED), model)
    return model


def make_index(name: str, directory: Path, encoder: str = "none", positions: bool = True) -> dict[str, float]:
    """Build the index of a set if missing; return its CPU seconds and MiB."""
    start = time.process_time()
    if not (directory / "manifest.json").exists():
        if name == "bbc-news":
            create(directory, encoder=encoder, positions=positions)
            Engine(directory).add(documents_for(name))
        else:
            build([_corpus(name)], directory, BuildOptions(encoder=encoder, positions=positions))
    size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    return {"cpu_seconds": round(time.process_time() - start, 1), "mib": round(size / 2**20, 1)}


def training(name: str, model: Path, *settings: str, train: Path | None = None) -> TrainConfig:
    """Return the training of a small encoder on the links of a set, or on those in the file `train`."""
    data = shared_data() / name
    paths = {
        "data.queries": data / "queries.jsonl.gz",
        "data.documents": data / "corpus.jsonl.gz",
        "data.train": train or data / "qrels" / "train.tsv",
        "data.dev": data / "qrels" / "dev.tsv",
        "data.word_vectors": shared_data() / "word-vectors-en",
        "output.path": model,
    }
    given = [*(f"{key}={str(path)!r}" for key, path in paths.items()), *settings]
    return load(ROOT / "benchmarks" / "configs" / "statements.toml", TrainConfig, given)


def gather(directory: Path, judged: Judged, settings: PoolSettings, *, encoder: bool) -> Gathered:
    """Return the candidates of judged queries."""
    engine = Engine(directory)
    gatherer = Gatherer(engine.collection, settings, engine.embed if encoder else None)
    texts = [q.text for q in judged.queries]
    pool = gather_batches(gatherer, texts)
    relevant = relevant_rows(gatherer.ranking, judged.queries, judged.qrels, pool.rows)
    answer = engine.search(texts, 30, mode="hybrid" if encoder else "bm25")
    ranks = [
        next((1 / (i + 1) for i, id_ in enumerate(hits.ids) if judged.qrels[q.id].get(id_, 0) > 0), 0.0)
        for q, hits in zip(judged.queries, answer.hits, strict=True)
    ]
    return Gathered(pool, relevant, np.array(ranks))
