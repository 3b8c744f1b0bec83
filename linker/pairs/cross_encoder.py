"""The Cross-BERT-GRU: a pair of sentences, read together, to a distribution over the grades 0–5.

[CLS] s1 [SEP] s2 [SEP] → BERT → GRU → masked mean ⊕ masked max → dropout → linear → softmax. With `siamese`
the sentences are also read apart by the same BERT: their cosine sets the distribution that the rest corrects, and
|u − v| and u·v join the pooled states (Reimers & Gurevych, EMNLP 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from linker.pairs.backbone import Backbone
from linker.pairs.cross_config import CrossConfig
from linker.pairs.data import TOP
from linker.progress import bar

Floats = npt.NDArray[np.float32]
Texts = tuple[str, str]
GRADES = 6
BATCH = 32


def hard_labels(gold: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the grades 0–5 of scores [n]: floor(y + .5), clipped; a half goes up."""
    return np.clip(np.floor(np.asarray(gold, np.float64) + 0.5), 0, GRADES - 1).astype(np.int64)


def soft_labels(gold: npt.ArrayLike) -> Floats:
    """Split each score [n] between its neighbouring grades, [n, 6], so that the expected grade is the score."""
    y = np.clip(np.asarray(gold, np.float64), 0, GRADES - 1)
    distance = np.abs(y[:, None] - np.arange(GRADES))
    return np.asarray(np.maximum(0, 1 - distance), np.float32)


def expected_value(probabilities: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return Σ k·p_k / 5 of distributions [n, 6]: a similarity from 0 to 1."""
    return np.asarray(np.asarray(probabilities, np.float64) @ np.arange(GRADES) / TOP, np.float64)


def argmax_value(probabilities: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the likeliest grade / 5 of distributions [n, 6]."""
    return np.asarray(np.argmax(probabilities, axis=1) / TOP, np.float64)


def masked_pool(states: Tensor, mask: Tensor) -> Tensor:
    """Return mean ⊕ max over the places of the mask: [B, L, H] and [B, L] to [B, 2H]; zeros without any place."""
    inside = mask[..., None]
    mean = (states * inside).sum(1) / inside.sum(1).clamp(min=1)
    highest = states.masked_fill(~inside, -torch.inf).amax(1)
    return torch.cat([mean, torch.where(mask.any(1, keepdim=True), highest, 0.0)], dim=1)


class CrossBertGru(nn.Module):
    """Token ids of pairs to logits over the grades."""

    def __init__(self, config: CrossConfig, backbone: Backbone) -> None:
        super().__init__()
        self.config, self.specials = config, _specials(backbone)
        self.bert = backbone.module
        self.half_precision = False  # the backbone's products in bfloat16
        self.gru = nn.GRU(backbone.dim, config.hidden, batch_first=True)
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(2 * config.hidden + (2 * backbone.dim if config.siamese else 0), GRADES)
        if config.siamese:
            # The grade that a cosine stands for, slope·cosine + offset, and how sure that is.
            self.prior = nn.Parameter(torch.tensor([TOP, 0.0, 0.0]))
            nn.init.zeros_(self.head.weight)
            nn.init.zeros_(self.head.bias)

    def forward(self, cross: dict[str, Tensor], apart: Sequence[dict[str, Tensor]] = ()) -> Tensor:
        """Map a batch of pairs, read together and (if siamese) each side alone, to logits [B, 6]."""
        states, _ = self.gru(self._states(cross))
        pooled = masked_pool(states, self._pooled_places(cross))
        if not apart:
            logits: Tensor = self.head(self.dropout(pooled))
            return logits
        u, v = (self.embedding(side) for side in apart)
        features = torch.cat([pooled, (u - v).abs(), u * v], dim=1)
        corrected: Tensor = self.head(self.dropout(features)) + self.prior_logits((u * v).sum(1))
        return corrected

    def prior_logits(self, cosines: Tensor) -> Tensor:
        """Return the logits [B, 6] that cosines [B] alone stand for: a bell around a grade linear in the cosine."""
        slope, offset, sharpness = self.prior
        centre = (slope * cosines + offset)[:, None]
        grades = torch.arange(GRADES, device=cosines.device, dtype=centre.dtype)
        logits: Tensor = -0.5 * sharpness.exp() * (centre - grades) ** 2
        return logits

    def _states(self, tokens: dict[str, Tensor]) -> Tensor:
        with torch.autocast(tokens["input_ids"].device.type, torch.bfloat16, enabled=self.half_precision):
            states: Tensor = self.bert(**tokens).last_hidden_state
        return states.float()

    def embedding(self, tokens: dict[str, Tensor]) -> Tensor:
        """Return the mean of the token states, as sentence-transformers takes it, of length 1."""
        mask = tokens["attention_mask"][..., None].float()
        mean = (self._states(tokens) * mask).sum(1) / mask.sum(1).clamp(min=1)
        return functional.normalize(mean, dim=1)

    def _pooled_places(self, tokens: dict[str, Tensor]) -> Tensor:
        """Return the places that count: all but separators and padding; none where there is no word at all."""
        start, separator, padding = self.specials
        ids = tokens["input_ids"]
        places = tokens["attention_mask"].bool() & (ids != separator) & (ids != padding)
        return places & (places & (ids != start)).any(1, keepdim=True)


class CrossEncoder:
    """A Cross-BERT-GRU with its tokenizer: scores for pairs of texts."""

    def __init__(self, config: CrossConfig, backbone: Backbone, module: CrossBertGru) -> None:
        self.config, self.backbone, self.module = config, backbone, module

    @classmethod
    def new(cls, config: CrossConfig, backbone: Backbone) -> CrossEncoder:
        """Put a fresh head on a backbone; seed torch first for the same one again."""
        return cls(config, backbone, CrossBertGru(config, backbone))

    def describe(self) -> dict[str, Any]:
        """Return what, with weights and tokenizer, decides the scores."""
        return {"backbone": self.backbone.name, "model": asdict(self.config)}

    def logits(self, pairs: Sequence[Texts]) -> Tensor:
        """Return the logits [B, 6] of one batch, with gradients where torch records them."""
        first, second = [p[0] for p in pairs], [p[1] for p in pairs]
        read, limit = self.backbone.tokens, self.config.max_length
        apart = [read(side, None, limit) for side in (first, second)] if self.config.siamese else []
        logits: Tensor = self.module(read(first, second, limit), apart)
        if self.config.both_orders and not self.module.training:
            logits = (logits + self.module(read(second, first, limit), apart[::-1])) / 2
        return logits

    def probabilities(
        self, pairs: Sequence[Texts], *, batch_size: int = BATCH, progress: bool = False
    ) -> Floats:
        """Return the distributions over the grades 0–5, float32 [n, 6], in the order of `pairs`."""
        found = np.zeros((len(pairs), GRADES), dtype=np.float32)
        order = np.argsort([len(a) + len(b) for a, b in pairs], kind="stable")  # alike lengths: less padding
        training = self.module.training
        self.module.eval()
        with torch.inference_mode(), bar(len(pairs) if progress else 0, "scoring", "pairs") as shown:
            for start in range(0, len(pairs), batch_size):
                rows = order[start : start + batch_size]
                found[rows] = torch.softmax(self.logits([pairs[row] for row in rows]), dim=1).numpy()
                shown.update(len(rows))
        self.module.train(training)
        return found

    def cosines(self, pairs: Sequence[Texts]) -> npt.NDArray[np.float64]:
        """Return the cosines [n] of the sentences read apart by the backbone, mean pooled."""
        distinct = sorted({text for pair in pairs for text in pair}, key=len)
        place = {text: row for row, text in enumerate(distinct)}
        with torch.inference_mode():
            parts = [
                self.module.embedding(
                    self.backbone.tokens(distinct[i : i + BATCH], None, self.config.max_length)
                )
                for i in range(0, len(distinct), BATCH)
            ]
        vectors = torch.cat(parts).double().numpy()
        rows = np.array([[place[a], place[b]] for a, b in pairs], dtype=np.int64).reshape(-1, 2)
        return np.asarray((vectors[rows[:, 0]] * vectors[rows[:, 1]]).sum(axis=1), np.float64)

    def score(self, pairs: Sequence[Texts]) -> Floats:
        """Return each pair's expected similarity from 0 to 1, float32 [n]: the `Reranker` protocol."""
        return expected_value(self.probabilities(pairs)).astype(np.float32)


def _specials(backbone: Backbone) -> tuple[int, int, int]:
    """Return the ids of start, separator and padding; −1 for one that the tokenizer has not."""
    tokenizer = backbone.tokenizer
    ids = (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id)
    start, separator, padding = (-1 if id_ is None else int(id_) for id_ in ids)
    return start, separator, padding
