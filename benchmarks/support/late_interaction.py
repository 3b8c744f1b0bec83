"""Scores of candidates that read more than one vector per document: MaxSim over tokens and over several relays.

MaxSim (Khattab & Zaharia, ColBERT, 2020): each query token's best cosine with a token of the document, weighted by
the share that the query's relay gives it. A sparse α keeps few tokens per document; the others need no vector.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.support.attention_training import Ids, encode
from indexes.arrays import normalised
from linker.training.compact_star import CompactStar, Types

Scores = npt.NDArray[np.float32]
SEGMENTS, SHORTEST = 8, 48  # maximum relays per document, minimum tokens per relay
WINDOW, NEIGHBOURS = 2, 0.5  # tokens on either side, and the weight of their mean in a token's state


def pooled(best: npt.NDArray[np.int64], dense: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the candidates of two rankings [n, k] without duplicates, int64 [n, c], padded with −1."""
    lines = [list(dict.fromkeys([*a, *b])) for a, b in zip(best.tolist(), dense.tolist(), strict=True)]
    out = np.full((len(lines), max(map(len, lines))), -1, dtype=np.int64)
    for number, line in enumerate(lines):
        out[number, : len(line)] = line
    return out


@torch.inference_mode()
def kept_types(model: CompactStar, texts: Sequence[Ids], alpha: float) -> list[npt.NDArray[np.int64]]:
    """Return the types of each text with nonzero weight in a relay with this α, not scaled by length."""
    model.fixed_alpha, model.length_free = alpha, False
    table = model.star.embedding.weight
    normed = torch.nn.functional.layer_norm(table, table.shape[-1:])
    found = []
    for start in range(0, len(texts), 128):
        types = Types.of(texts[start : start + 128])
        masses = model.masses(types, normed, model.mean(types, table))[:, :, 1:].amax(1)
        found += [ids[weights > 0].numpy() for ids, weights in zip(types.ids, masses, strict=True)]
    model.fixed_alpha, model.length_free = None, True
    return found


@torch.inference_mode()
def query_weights(model: CompactStar, texts: Sequence[Ids]) -> list[tuple[npt.NDArray[np.int64], Scores]]:
    """Return the types of each text and the mean share of each over the heads."""
    types, table = Types.of(texts), model.star.embedding.weight
    normed = torch.nn.functional.layer_norm(table, table.shape[-1:])
    masses = model.masses(types, normed, model.mean(types, table))[:, :, 1:].mean(1)
    return [
        (ids[count > 0].numpy(), weights[count > 0].numpy())
        for ids, weights, count in zip(types.ids, masses, types.counts, strict=True)
    ]


def max_sim(
    queries: Sequence[tuple[npt.NDArray[np.int64], Scores]],
    rows: npt.NDArray[np.int64],
    kept: Sequence[npt.NDArray[np.int64]],
    table: Scores,
) -> Scores:
    """Return MaxSim for candidates `rows` [n, c] with types `kept`, using unit vectors `table` [V, d]: [n, c]."""
    out = np.zeros(rows.shape, dtype=np.float32)
    for number, ((ids, weights), line) in enumerate(zip(queries, rows, strict=True)):
        places = [p for p, row in enumerate(line.tolist()) if row >= 0 and len(kept[row])]
        if not places or not len(ids):
            continue
        types = [kept[line[p]] for p in places]
        starts = np.cumsum([0, *(len(t) for t in types[:-1])])
        best = np.maximum.reduceat(table[ids] @ table[np.concatenate(types)].T, starts, axis=1)  # [U, places]
        out[number, places] = weights @ best / max(float(weights.sum()), 1e-9)
    return out


def state_sim(
    queries: Sequence[Ids], rows: npt.NDArray[np.int64], documents: Sequence[Ids], table: Scores
) -> Scores:
    """Return the same over states: every token's vector plus the mean of its neighbours, equally weighted."""
    out = np.zeros(rows.shape, dtype=np.float32)
    for number, (ids, line) in enumerate(zip(queries, rows, strict=True)):
        states = _states(ids, table)
        for place, row in enumerate(line.tolist()):
            if row >= 0 and len(ids):
                out[number, place] = (states @ _states(documents[row], table).T).max(1).mean()
    return out


def _states(ids: Ids, table: Scores) -> Scores:
    words = table[ids]
    total = np.cumsum(np.vstack([np.zeros((1, words.shape[1]), np.float32), words]), axis=0)
    place = np.arange(len(ids))
    low, high = np.maximum(place - WINDOW, 0), np.minimum(place + WINDOW + 1, len(ids))
    around = (total[high] - total[low] - words) / np.maximum(high - low - 1, 1)[:, None]
    return normalised(words + NEIGHBOURS * around)


def relay_sim(
    model: CompactStar, queries: Scores, rows: npt.NDArray[np.int64], documents: Sequence[Ids]
) -> Scores:
    """Return each candidate's best cosine over the relays of its segments, float32 [n, c]."""
    wanted = np.unique(rows[rows >= 0])
    parts = [_segments(documents[row]) for row in wanted]
    vectors = encode(model, [part for segments in parts for part in segments])
    ends = np.cumsum([len(segments) for segments in parts])
    starts = dict(zip(wanted.tolist(), zip(ends - [len(s) for s in parts], ends, strict=True), strict=True))
    out = np.zeros(rows.shape, dtype=np.float32)
    for number, line in enumerate(rows.tolist()):
        for place, row in enumerate(line):
            if row >= 0:
                start, end = starts[row]
                out[number, place] = (vectors[start:end] @ queries[number]).max()
    return out


def _segments(ids: Ids) -> list[Ids]:
    return np.array_split(ids, max(1, min(SEGMENTS, len(ids) // SHORTEST)))


def unit_table(model: CompactStar) -> Scores:
    """Return the word vectors at length 1, float32 [V, d]."""
    return normalised(model.star.embedding.weight.detach().numpy())
