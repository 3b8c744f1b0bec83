"""Shared by several tests of training."""

from pathlib import Path

import numpy as np
import pytest

from tests.helpers import write_json_lines


@pytest.fixture
def config(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(60)]
    rows = [(rng.choice(words, 12), i) for i in range(30)]
    corpus = [{"_id": f"d{i}", "text": " ".join(w)} for w, i in rows]
    queries = [{"_id": f"q{i}", "text": " ".join(w[:4])} for w, i in rows]
    for name, records in (("corpus", corpus), ("queries", queries)):
        write_json_lines(tmp_path / f"{name}.jsonl", records)
    for name, part in (("train", range(20)), ("dev", range(20, 30))):
        lines = ["query-id\tcorpus-id\tscore", *(f"q{i}\td{i}\t1" for i in part)]
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    path = tmp_path / "config.toml"
    path.write_text(
        f"""
[data]
queries = "{tmp_path}/queries.jsonl"
documents = "{tmp_path}/corpus.jsonl"
train = "{tmp_path}/train.tsv"
dev = "{tmp_path}/dev.tsv"
word_vectors = "lsa"
dim = 16
min_count = 1
[encoder]
heads = 2
head_dim = 4
[training]
epochs = 1
batch_size = 8
[output]
path = "{tmp_path}/model"
"""
    )
    return path
