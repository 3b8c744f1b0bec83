"""A run by another tool (bm25s) on real tweets: our printed figures equal trec_eval's to the last digit."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import pytrec_eval

from linker.evaluation import evaluate
from tests.helpers import shared_data


def read(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_bm25s_on_tweets_equals_trec_eval(tmp_path: Path) -> None:
    bm25s = pytest.importorskip("bm25s", reason="the extra 'bench' is not installed")
    folder = shared_data("tweets2claims")
    corpus, queries = read(folder / "corpus.jsonl.gz"), read(folder / "queries.jsonl.gz")
    with (folder / "qrels" / "test.tsv").open() as lines:
        links = [line.split() for line in list(lines)[1:]]
    judged: dict[str, dict[str, int]] = {}
    for topic, document, relevance in links:
        judged.setdefault(topic, {})[document] = int(relevance)
    asked = [q for q in queries if q["_id"] in judged]
    index = bm25s.BM25()
    index.index(
        bm25s.tokenize([f"{d['title']} {d['text']}" for d in corpus], show_progress=False),
        show_progress=False,
    )
    tokens = bm25s.tokenize([q["text"] for q in asked], show_progress=False)
    found, scores = index.retrieve(tokens, k=100, show_progress=False)
    rows = [
        f"{q['_id']} Q0 {corpus[d]['_id']} {rank} {score:.6f} bm25s\n"
        for q, ids, values in zip(asked, found.tolist(), scores.tolist(), strict=True)
        for rank, (d, score) in enumerate(zip(ids, values, strict=True))
    ]
    (tmp_path / "run").write_text("".join(rows))
    with (tmp_path / "run").open() as lines:
        run = pytrec_eval.parse_run(lines)
    values = pytrec_eval.RelevanceEvaluator(judged, {"official", "ndcg", "success.1,5"}).evaluate(run)
    mine = evaluate(folder / "qrels" / "test.tsv", tmp_path / "run", ["official", "ndcg", "success.1,5"])
    assert mine.num_answered == len(judged) == 202
    for name, value in mine.items():
        if name != "num_q":
            expected = pytrec_eval.compute_aggregated_measure(name, [v[name] for v in values.values()])
            assert f"{value:.4f}" == f"{expected:.4f}", name
    assert mine["recip_rank"] > 0.6
