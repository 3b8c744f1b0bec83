"""Shared by several tests: a deterministic encoder without a model library, corpora, and the command line."""

import functools
import io
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
import xxhash

from indexes.interface import Document

if TYPE_CHECKING:
    from linker.engine import Engine

ROOT = Path(__file__).parents[1]
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
STARTS = ("ba", "de", "ki", "lo", "mu", "ne", "po", "ra", "su", "ti")
WORDS = [a + b for a in STARTS for b in ("nel", "ras", "dom", "vik", "pol", "sen", "tur", "gal")]


def shared_data(name: str) -> Path:
    """Return a folder of the shared benchmark data; skip the test where it is absent."""
    folder = Path(os.environ.get("LINKER_SHARED_DATA", ROOT.parent / "shared" / "data")) / name
    if not folder.exists():
        pytest.skip(f"the shared data ({name}) is not here: set LINKER_SHARED_DATA")
    return folder


class HashEncoder:
    """Sum of one fixed random vector per word: cheap, deterministic across processes, blind to word order."""

    def __init__(self, dim: int = 16, name: str = "hash") -> None:
        self.dim = dim
        self.fingerprint = f"{name}-{dim}".ljust(64, "0")

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                rows[row] += _vector(word, self.dim)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return (rows / np.where(norms > 0, norms, 1)).astype(np.float32)


HASH = HashEncoder()


@functools.cache
def _vector(word: str, dim: int) -> npt.NDArray[np.float64]:
    return np.random.default_rng(xxhash.xxh3_64_intdigest(word.encode(errors="replace"))).standard_normal(dim)


def sentence(rng: random.Random, length: int) -> str:
    return " ".join(rng.choices(WORDS, k=length))


def write_json_lines(path: Path, records: Iterable[object]) -> Path:
    """Write each record as a line of JSON."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def write_corpus(path: Path, count: int, *, seed: int = 0, prefix: str = "d", length: int = 12) -> Path:
    """Write a JSONL corpus of random sentences with a title and metadata."""
    rng = random.Random(seed)
    records = (
        {
            "_id": f"{prefix}{number}",
            "title": sentence(rng, 3),
            "text": sentence(rng, length),
            "metadata": {"group": number % 7, "lang": rng.choice(["en", "de"])},
        }
        for number in range(count)
    )
    return write_json_lines(path, records)


def make_engine(
    directory: Path, documents: Iterable[Document], encoder: HashEncoder | None = HASH, **options: Any
) -> "Engine":
    """Make an index of documents, with vectors from a hash encoder unless it is None, and return its engine."""
    from linker.engine import Engine, building

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "load_encoder", lambda name, **_: encoder)
        building.create(directory, encoder="hash" if encoder else "none", **options)
    engine = Engine(directory, encoder=encoder)
    engine.add(documents)
    return engine


def linker(
    *arguments: str | Path, stdin: str = "", check: int | None = 0
) -> subprocess.CompletedProcess[str]:
    """Run the command line inside this process (fast) and check its exit status."""
    from linker.cli import main

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    command = ["linker", *map(str, arguments)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", command)
        patch.setattr(sys, "stdin", io.StringIO(stdin))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        status: object = 0
        try:
            main()
        except SystemExit as e:
            status = e.code or 0
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return _checked(subprocess.CompletedProcess(command, int(str(status)), *texts), check)


def linker_process(*arguments: str | Path, check: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Run the command line in a separate process and check its exit status."""
    command = [sys.executable, "-m", "linker", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return _checked(done, check)


def run_page(name: str, folder: Path, pattern: str = r"```sh\n(.*?)```", *, blocks: int) -> str:
    """Run the commands that a page of docs/ shows, one after the other, in a folder; return what they print.

    `blocks`: how many blocks of commands the page has.
    """
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    found = re.findall(pattern, page, re.DOTALL)
    assert len(found) == blocks
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    script = ["bash", "-euo", "pipefail", "-c", "".join(found)]
    done = subprocess.run(script, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _checked(done: subprocess.CompletedProcess[str], status: int | None) -> subprocess.CompletedProcess[str]:
    assert "Traceback" not in done.stderr, done.stderr
    if status is not None:
        assert done.returncode == status, f"{done.returncode}: {done.stdout}\n{done.stderr}"
    return done


def tiny_bert(
    folder: Path, words: Iterable[str], *, dim: int = 32, layers: int = 2, heads: int = 2, seed: int = 0
) -> Path:
    """Write a small BERT with random weights and return its folder; its vocabulary is `words` and single characters."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    from linker.scoring.pairs.backbone import Backbone

    folder.mkdir(parents=True, exist_ok=True)
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    known = dict.fromkeys(
        [*SPECIAL, *(w.lower() for w in words), *letters, *(f"##{c}" for c in letters), *".,!?'-"]
    )
    vocabulary = {token: row for row, token in enumerate(known)}
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=dim,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=2 * dim,
        max_position_embeddings=128,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module = BertModel(config)
    tokenizer = BertTokenizer(vocab=vocabulary, do_lower_case=True, model_max_length=128)
    Backbone(str(folder), module, tokenizer, 128).save(folder)
    return folder
