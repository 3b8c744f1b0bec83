"""Training and evaluation of compact stars: whole documents as types, with the contrast from the first step."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from benchmarks.support.ast_data import Case, read_case
from linker.encoders.tokens import load_tokenizer
from linker.training.compact_star import CompactStar, Types
from linker.training.losses import info_nce
from linker.training.run import joined
from linker.training.schedule import learning_rate_scale
from linker.training.vectors import start_vectors

Ids = npt.NDArray[np.int32]
LENGTH = 2000


@dataclass(frozen=True)
class Recipe:
    """How a compact star learns. A rate of 0 freezes a part; `links` is the part of the links to learn from."""

    mean_only: bool = False  # the relay is the mean
    vectors: float = 3e-3  # learning rate of the word vectors
    attention: float = 0.0  # learning rate of queries, keys, values and outputs
    alpha: float = 0.0  # learning rate of α before its sigmoid
    inputs: float = 0.0  # learning rate of idf, count and position in the keys
    used: int = 3  # number of these inputs used
    epochs: int = 8
    batch: int = 512
    cloze: int = 1024  # windows per step
    temperature: float = 0.07
    dropout: float = 0.3
    links: str = "all"  # or "first", "second": halves by text
    bank: bool = False  # all documents, encoded at the start of the epoch, are negatives too
    teacher: float = 0.0  # the weight of the ranker's lists in the loss
    fixed_alpha: float | None = None
    weights: bool = True  # gradients of the vectors also reach the weights, not only the mixed values
    keys: bool = True  # … and the keys
    stream: int = 8  # random stream: vectors that learned from a window must not see the same windows again
    seed: int = 0


@dataclass(frozen=True)
class Data:
    """A set as token ids, with its start vectors, idf and links."""

    case: Case
    tokenizer: Any
    vectors: npt.NDArray[np.float32]
    texts: list[Ids]
    documents: list[Ids]
    idf: npt.NDArray[np.float64]

    def links(self, part: str) -> list[tuple[int, int]]:
        """Return the training links of a part, halved by text."""
        links = sorted(self.case.pairs.links)
        half = {"all": (0, 1), "first": (0,), "second": (1,)}[part]
        return [(t, d) for t, d in links if t * 2654435761 % 2**32 % 997 % 2 in half]


def read(name: str, work: Path) -> Data:
    """Read a set of the shared data; its start vectors are cached in `work`."""
    case = read_case(name, work / name)
    path, cache = work / name / "vectors.npy", work / name / "ids.npz"
    tokenizer = load_tokenizer(Path(case.data.word_vectors) / "tokenizer.json")
    if not path.exists():
        np.save(path, start_vectors(case.data, joined(case.pairs), 0)[1])
    if not cache.exists():
        _save_ids(cache, tokenizer, case)
    with np.load(cache) as kept:
        texts, documents = (np.split(kept[k], kept[f"{k}_ends"][:-1]) for k in ("texts", "documents"))
    vectors = np.load(path)
    found = np.bincount(np.concatenate([np.unique(ids) for ids in documents]), minlength=len(vectors))
    idf = np.log(1 + (len(documents) - found + 0.5) / (found + 0.5))
    return Data(case, tokenizer, vectors, texts, documents, idf / idf.max())


def _save_ids(path: Path, tokenizer: Any, case: Case) -> None:
    arrays = {}
    for key, texts in (("texts", case.pairs.texts), ("documents", case.pairs.documents)):
        ids = tokenizer.encode_batch(texts, 2048)
        arrays[key] = np.array([i for text in ids for i in text], dtype=np.int32)
        arrays[f"{key}_ends"] = np.cumsum([len(text) for text in ids])
    np.savez(path, **arrays)  # type: ignore[arg-type]


def learn(model: CompactStar, data: Data, recipe: Recipe) -> list[float]:
    """Train in place and return the mean loss of every epoch."""
    rng = np.random.default_rng([recipe.seed, recipe.stream])
    torch.manual_seed(recipe.seed)
    links = data.links(recipe.links)
    linked: dict[int, set[int]] = {}
    for text, document in links:
        linked.setdefault(text, set()).add(document)
    batch = min(recipe.batch, max(32, len(links) // 16))
    cloze = min(recipe.cloze, 2 * batch)
    steps = Steps(model, recipe, recipe.epochs * -(-len(links) // batch))
    for _ in range(recipe.epochs):
        bank = encode(model, data.documents) if recipe.bank else None
        order = rng.permutation(len(links))
        for start in range(0, len(links), batch):
            pairs = [links[i] for i in order[start : start + batch]]
            loss = _loss(model, data, recipe, pairs, linked, bank, rng)
            if cloze:
                loss = loss + cloze_loss(model, data.documents, recipe, cloze, rng)
            steps.step(loss)
        steps.end_epoch()
    return steps.losses


class Steps:
    """The optimizer of a model, its schedule over `total` steps, and the mean loss of every epoch (`losses`)."""

    def __init__(self, model: CompactStar, recipe: Recipe, total: int) -> None:
        self.losses: list[float] = []
        self._optimizer, self._total, self._step = optimizer_of(model, recipe), total, 0
        self._rates = [group["lr"] for group in self._optimizer.param_groups]
        self._running: list[float] = []

    def step(self, loss: Tensor) -> None:
        """Take a step down the gradient of a loss, clipped to norm 1."""
        scale = learning_rate_scale(self._step, self._total, 0.1)
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * scale
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_([p for g in self._optimizer.param_groups for p in g["params"]], 1.0)
        self._optimizer.step()
        self._running.append(loss.item())
        self._step += 1

    def end_epoch(self) -> None:
        """Record the mean loss since the last call, and print it."""
        self.losses.append(round(float(np.mean(self._running)), 4))
        self._running = []
        print(f"  epoch loss {self.losses[-1]}", file=sys.stderr, flush=True)


def optimizer_of(model: CompactStar, recipe: Recipe) -> torch.optim.Optimizer:
    """Set which parts of a model learn, and return its optimizer."""
    model.mean_only, model.fixed_alpha = recipe.mean_only, recipe.fixed_alpha
    model.used = recipe.used
    model.learns_weights, model.learns_keys = recipe.weights, recipe.keys
    relay = model.relay
    parts = [
        ([model.star.embedding.weight], recipe.vectors),
        ([*relay.query.parameters(), *relay.key.parameters(), *relay.value.parameters(), *relay.out.parameters()],
         recipe.attention),
        ([relay.raw_alpha], recipe.alpha),
        ([model.inputs], recipe.inputs),
    ]  # fmt: skip
    for parameters, rate in parts:
        for parameter in parameters:
            parameter.requires_grad_(rate > 0)
    groups = [{"params": parameters, "lr": rate} for parameters, rate in parts if rate > 0]
    return torch.optim.AdamW(groups, weight_decay=0.0)


def dropped(texts: Sequence[Ids], rate: float, rng: np.random.Generator) -> Types:
    return Types.of([t[rng.random(len(t)) >= rate] if rate else t for t in texts])


def window(ids: Ids, rng: np.random.Generator) -> Ids:
    start = int(rng.integers(0, max(1, len(ids) - LENGTH + 1)))
    return ids[start : start + LENGTH]


def _loss(
    model: CompactStar,
    data: Data,
    recipe: Recipe,
    pairs: Sequence[tuple[int, int]],
    linked: dict[int, set[int]],
    bank: npt.NDArray[np.float32] | None,
    rng: np.random.Generator,
) -> Tensor:
    rows = list(dict.fromkeys(t for t, _ in pairs))
    columns = list(dict.fromkeys(d for _, d in pairs))
    texts = model(dropped([data.texts[t] for t in rows], recipe.dropout, rng))
    documents = model(dropped([window(data.documents[d], rng) for d in columns], recipe.dropout, rng))
    if bank is not None:
        rest = np.setdiff1d(np.arange(len(bank)), columns)
        documents = torch.cat([documents, torch.from_numpy(bank[rest])])
        columns = [*columns, *rest.tolist()]
    place = {d: i for i, d in enumerate(columns)}
    positives = torch.zeros(len(rows), len(columns), dtype=torch.bool)
    for row, text in enumerate(rows):
        here = [place[d] for d in linked[text] if d in place]
        positives[row, here] = True
    return info_nce(texts, documents, positives, recipe.temperature)


def cloze_loss(
    model: CompactStar, documents: Sequence[Ids], recipe: Recipe, size: int, rng: np.random.Generator
) -> Tensor:
    """Return the loss of finding a document's remainder from a window of 40 of its tokens (Lee et al., 2019)."""
    windows, rests = [], []
    for row in rng.choice(len(documents), size, replace=False):
        ids = documents[row]
        if len(ids) < 2:
            continue
        length = min(40, len(ids) // 2)
        start = int(rng.integers(0, len(ids) - length + 1))
        windows.append(ids[start : start + length])
        rests.append(window(np.concatenate([ids[:start], ids[start + length :]]), rng))
    found = [model(dropped(part, recipe.dropout, rng)) for part in (windows, rests)]
    return info_nce(found[0], found[1], torch.eye(len(rests), dtype=torch.bool), recipe.temperature)


@torch.inference_mode()
def encode(model: CompactStar, texts: Sequence[Ids]) -> npt.NDArray[np.float32]:
    """Return vectors of texts, float32 [n, d]; similar lengths share a pass."""
    order = np.argsort([-len(t) for t in texts], kind="stable")
    found = np.zeros((len(texts), model.star.embedding.weight.shape[1]), dtype=np.float32)
    for start in range(0, len(order), 512):
        rows = order[start : start + 512]
        found[rows] = model(Types.of([texts[row] for row in rows])).numpy()
    return found


def reciprocal(data: Data, split: str, queries: Any, documents: Any) -> npt.NDArray[np.float64]:
    """Return the reciprocal rank of each text's best linked document among all; ties count against it."""
    own: dict[int, list[int]] = {}
    for text, document in data.case.links[split]:
        own.setdefault(text, []).append(document)
    found = []
    for row, text in enumerate(data.case.linked[split]):
        scores = documents @ queries[row]
        best = scores[own[text]].max()
        scores[own[text]] = -np.inf
        found.append(1 / (1 + int((scores >= best).sum())))
    return np.array(found)


def judge(
    model: CompactStar, data: Data, splits: Sequence[str] = ("dev",)
) -> dict[str, npt.NDArray[np.float64]]:
    """Return the reciprocal ranks for the splits' texts among all documents."""
    documents = encode(model, data.documents)
    texts = {s: encode(model, [data.texts[t] for t in data.case.linked[s]]) for s in splits}
    return {s: reciprocal(data, s, texts[s], documents) for s in splits}
