"""MiniLM at its best, as the rival of the AST: zero-shot, both on the first 256 tokens and on the best chunk of 256.

`python -m benchmarks.ast_rival --work FOLDER [--chunks N]` writes FOLDER/DATA/minilm.json for benchmarks.ast_tables.
The model runs in bfloat16, which halves its time on this machine; vectors are cached in FOLDER, so that a killed run
can resume.
"""

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.ast_tables import DATA, DEPTH, retrieval, tables
from benchmarks.support.ast_data import Case, best, read_case
from benchmarks.support.common import kept
from benchmarks.support.harness import KEPT, Arguments, benchmark

# tokens per chunk without [CLS] and [SEP]; a shorter remainder is dropped
SIZE, SHORTEST, BATCH = 254, 16, 32
Vectors = npt.NDArray[np.float32]


def figures(
    case: Case, texts: Vectors, chunks: list[tuple[npt.NDArray[np.int64], Vectors]]
) -> dict[str, Any]:
    """Return the tables (one chunk) and retrieval, where a document's score is its best chunk's."""
    dense = {}
    for split in ("dev", "test"):
        queries = texts[case.linked[split]]
        scores = np.full((len(queries), len(case.pairs.documents)), -np.inf, dtype=np.float32)
        for rows, found in chunks:
            scores[:, rows] = np.maximum(scores[:, rows], queries @ found.T)
        dense[split] = best(scores, DEPTH)
    first = chunks[0][1]
    one = {"tables": tables(case, texts[case.linked["test"]], first)} if len(chunks) == 1 else {}
    return one | retrieval(case, dense)


def vectors(
    case: Case, folder: Path, chunks: int
) -> tuple[Vectors, list[tuple[npt.NDArray[np.int64], Vectors]]]:
    """Return vectors for all texts, and for all documents' n-th chunks with the documents' rows."""
    model = _Model()
    tokens = functools.cache(lambda: model.tokens(case.pairs.documents))
    parts = []

    def encoded(number: int) -> dict[str, Any]:
        cut = [ids[number * SIZE : (number + 1) * SIZE] for ids in tokens()]
        rows = [i for i, ids in enumerate(cut) if number == 0 or len(ids) >= SHORTEST]
        return {"rows": np.array(rows, dtype=np.int64), "v": model.encode([cut[row] for row in rows])}

    for number in range(chunks):
        found = kept(folder / f"minilm-{number}.npz", functools.partial(encoded, number))
        if not len(found["rows"]):
            break
        parts.append((found["rows"], found["v"]))
    texts = kept(
        folder / "minilm-texts.npy",
        lambda: model.encode([ids[:SIZE] for ids in model.tokens(case.pairs.texts)]),
    )
    return texts, parts


class _Model:
    """all-MiniLM-L6-v2 on token ids."""

    def __init__(self) -> None:
        import torch

        from linker.encoders.pretrained import _open

        self._torch, self._model = torch, _open("minilm").to(torch.bfloat16)

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        encode = self._model.tokenizer.encode
        return [encode(text, add_special_tokens=False, truncation=False, verbose=False) for text in texts]

    def encode(self, texts: Sequence[Sequence[int]]) -> Vectors:
        tokenizer, torch = self._model.tokenizer, self._torch
        out = np.zeros((len(texts), 384), dtype=np.float32)
        order = np.argsort([-len(ids) for ids in texts], kind="stable")
        with torch.inference_mode():
            for start in range(0, len(order), BATCH):
                rows = order[start : start + BATCH]
                ids = torch.full((len(rows), len(texts[rows[0]]) + 2), tokenizer.pad_token_id)
                for i, row in enumerate(rows):
                    whole = [tokenizer.cls_token_id, *texts[row], tokenizer.sep_token_id]
                    ids[i, : len(whole)] = torch.tensor(whole)
                batch = {"input_ids": ids, "attention_mask": (ids != tokenizer.pad_token_id).long()}
                out[rows] = self._model(batch)["sentence_embedding"].float().numpy()
        return out


@benchmark(work=KEPT, chunks=(100, "of a document at most"))
def measured(options: Arguments) -> None:
    for name in DATA:
        folder = options.work / name
        case = read_case(name, folder)
        texts, chunks = vectors(case, folder, options.chunks)
        rows = {"MiniLM": figures(case, texts, [chunks[0]])}
        if len(chunks) > 1:
            rows["MiniLM, best chunk"] = figures(case, texts, chunks) | {"chunks": len(chunks)}
        (folder / "minilm.json").write_text(json.dumps(rows))
