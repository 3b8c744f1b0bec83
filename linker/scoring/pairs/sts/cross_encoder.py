"""The Cross-BERT-GRU maps a pair of sentences, read together, to a distribution over the grades 0–5.

[CLS] s1 [SEP] s2 [SEP] → BERT → GRU → masked mean ⊕ masked max → dropout → linear → softmax. With `siamese`
the same BERT also reads the sentences separately: their cosine sets the prior distribution that the head corrects,
and |u − v| and u·v join the pooled states (Reimers & Gurevych, EMNLP 2019).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from indexes.dtypes import Float64Array
from linker.scoring.pairs.backbone import Backbone
from linker.scoring.pairs.sts.cross_config import CrossConfig
from linker.scoring.pairs.sts.scorer import BATCH, GradeHead, PairScorer, Texts

Tokens = dict[str, Tensor]  # ids and masks, int64 [B, L]


class ResetBeforeGru(nn.Module):
    """A single unidirectional layer with a zero initial state.

    With σ the logistic function, per step t (Cho et al. 2014, equations 5 to 8):
    r = σ(W_r x_t + U_r h_{t−1} + b_r), z = σ(W_z x_t + U_z h_{t−1} + b_z),
    c = tanh(W x_t + U (r ⊙ h_{t−1}) + b), h_t = z ⊙ h_{t−1} + (1 − z) ⊙ c.
    """

    def __init__(self, dim: int, hidden: int) -> None:
        """`dim` is the input size, `hidden` the state size; weights are uniform in ±1/√hidden, as in torch."""
        super().__init__()
        self.inputs = nn.Linear(dim, 3 * hidden)  # W_r, W_z, W and the biases
        self.gates = nn.Linear(hidden, 2 * hidden, bias=False)  # U_r, U_z
        self.candidate = nn.Linear(hidden, hidden, bias=False)  # U
        bound = 1 / math.sqrt(hidden)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the states of all steps [B, L, hidden], and the last one [1, B, hidden], of inputs [B, L, dim]."""
        size = self.candidate.in_features
        gate_inputs, candidate_inputs = self.inputs(inputs).split([2 * size, size], dim=2)
        state = inputs.new_zeros(len(inputs), size)
        states = []
        for gate_input, candidate_input in zip(
            gate_inputs.unbind(1), candidate_inputs.unbind(1), strict=True
        ):
            reset, keep = torch.sigmoid(gate_input + self.gates(state)).chunk(2, dim=1)
            new = torch.tanh(candidate_input + self.candidate(reset * state))
            state = torch.lerp(new, state, keep)
            states.append(state)
        return torch.stack(states, dim=1), state[None]


def masked_pool(states: Tensor, mask: Tensor) -> Tensor:
    """Return mean ⊕ max of `states` [B, L, H] over the positions in `mask`, bool [B, L]: [B, 2H]; 0 if it has none."""
    inside = mask[..., None]
    mean = (states * inside).sum(1) / inside.sum(1).clamp(min=1)
    highest = states.masked_fill(~inside, -torch.inf).amax(1)
    return torch.cat([mean, torch.where(mask.any(1, keepdim=True), highest, 0.0)], dim=1)


class CrossBertGru(nn.Module):
    """Maps the token ids of pairs to logits over the grades."""

    def __init__(self, config: CrossConfig, backbone: Backbone) -> None:
        super().__init__()
        self.config, self.specials = config, _specials(backbone)
        self.bert = backbone.module
        self.half_precision = False  # whether the backbone computes in bfloat16
        self.gru: nn.Module = (
            ResetBeforeGru(backbone.dim, config.hidden)
            if config.reset == "before"
            else nn.GRU(backbone.dim, config.hidden, batch_first=True)
        )
        self.dropout = nn.Dropout(config.dropout)
        size = 2 * config.hidden + (2 * backbone.dim if config.siamese else 0)
        self.head = GradeHead(size, prior=config.siamese)

    def forward(self, cross: Tokens, apart: Sequence[tuple[Tokens, list[int]]] = ()) -> Tensor:
        """Return the logits [B, 6] of a batch of pairs, read together and, if siamese, separately.

        `apart` holds, for the first and the second texts, the tokens of the distinct texts and the row of each pair's
        text in them.
        """
        states, _ = self.gru(self._states(cross))
        pooled = masked_pool(states, self._pooled_places(cross))
        if not apart:
            logits: Tensor = self.head(self.dropout(pooled))
            return logits
        u, v = (self.embedding(tokens)[rows] for tokens, rows in apart)
        features = torch.cat([pooled, (u - v).abs(), u * v], dim=1)
        corrected: Tensor = self.head(self.dropout(features), (u * v).sum(1))
        return corrected

    def _states(self, tokens: Tokens) -> Tensor:
        with torch.autocast(tokens["input_ids"].device.type, torch.bfloat16, enabled=self.half_precision):
            states: Tensor = self.bert(**tokens).last_hidden_state
        return states.float()

    def embedding(self, tokens: Tokens) -> Tensor:
        """Return the L2-normalised mean [B, d] of the token states, as sentence-transformers computes it."""
        mask = tokens["attention_mask"][..., None].float()
        mean = (self._states(tokens) * mask).sum(1) / mask.sum(1).clamp(min=1)
        return functional.normalize(mean, dim=1)

    def _pooled_places(self, tokens: Tokens) -> Tensor:
        """Return the mask, bool [B, L], of all tokens but separators and padding; all False if there is no word."""
        start, separator, padding = self.specials
        ids = tokens["input_ids"]
        places = tokens["attention_mask"].bool() & (ids != separator) & (ids != padding)
        return places & (places & (ids != start)).any(1, keepdim=True)


class CrossEncoder(PairScorer):
    """A Cross-BERT-GRU with its tokenizer."""

    module: CrossBertGru

    def __init__(self, config: CrossConfig, backbone: Backbone, module: CrossBertGru) -> None:
        self.config, self.backbone, self.module, self.head = config, backbone, module, module.head

    @classmethod
    def new(cls, config: CrossConfig, backbone: Backbone) -> CrossEncoder:
        """Return a randomly initialised head on a backbone; seed torch first to make it reproducible."""
        module = CrossBertGru(config, backbone)
        module.eval()
        return cls(config, backbone, module)

    def describe(self) -> dict[str, Any]:
        """Return the settings that determine the scores, apart from weights and tokenizer."""
        return {"backbone": self.backbone.name, "model": asdict(self.config)}

    def logits(self, pairs: Sequence[Texts]) -> Tensor:
        """Return the logits [B, 6] of one batch, with gradients if torch records them."""
        first, second = [p[0] for p in pairs], [p[1] for p in pairs]
        read, limit = self.backbone.tokens, self.config.max_length
        apart = [self._apart(side) for side in (first, second)] if self.config.siamese else []
        logits: Tensor = self.module(read(first, second, limit), apart)
        if self.config.both_orders and not self.module.training:
            logits = (logits + self.module(read(second, first, limit), apart[::-1])) / 2
        return logits

    def _apart(self, texts: Sequence[str]) -> tuple[Tokens, list[int]]:
        """Return the tokens of the distinct texts and each text's row: a query is encoded once for all candidates."""
        row = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        return self.backbone.tokens(list(row), None, self.config.max_length), [row[text] for text in texts]

    def cosines(self, pairs: Sequence[Texts]) -> Float64Array:
        """Return the cosines, float64 [n], of the mean-pooled sentences, read separately by the backbone."""
        distinct = sorted({text for pair in pairs for text in pair}, key=len)
        row_of = {text: row for row, text in enumerate(distinct)}
        with torch.inference_mode():
            parts = [
                self.module.embedding(
                    self.backbone.tokens(distinct[i : i + BATCH], None, self.config.max_length)
                )
                for i in range(0, len(distinct), BATCH)
            ]
        vectors = torch.cat(parts).double().numpy()
        rows = np.array([[row_of[a], row_of[b]] for a, b in pairs], dtype=np.int64).reshape(-1, 2)
        return np.asarray((vectors[rows[:, 0]] * vectors[rows[:, 1]]).sum(axis=1), np.float64)


def _specials(backbone: Backbone) -> tuple[int, int, int]:
    """Return the ids of start, separator and padding; −1 for one that the tokenizer lacks."""
    tokenizer = backbone.tokenizer
    ids = (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id)
    start, separator, padding = (-1 if id_ is None else int(id_) for id_ in ids)
    return start, separator, padding
