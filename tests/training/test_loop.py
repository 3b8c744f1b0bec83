"""Training learns, stops, logs, and resumes exactly after a SIGKILL."""

import dataclasses
import importlib.util
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from linker.base.errors import InputError, LinkerError
from linker.encoders import folder as folders
from linker.training import loop
from linker.training.batches import Batch, Pairs
from linker.training.config import TrainingConfig
from linker.training.loop import train
from linker.training.optimizer import Optimizer
from linker.training.retrieval import Judge, dev_sample, mine_negatives
from linker.training.schedule import learning_rate_scale
from linker.training.teacher import Teacher

TINY = Path(__file__).with_name("tiny.py")


def load_tiny() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tiny", TINY)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tiny = load_tiny()


def lines(out: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (out / "training/metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if k != "time"} for row in rows]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an uninterrupted training run."""
    out = tmp_path_factory.mktemp("whole") / "model"
    tiny.run(out)
    return out


def test_training_learns_and_keeps_the_best(whole: Path) -> None:
    rows = lines(whole)
    dev = [row["dev_mrr"] for row in rows if "dev_mrr" in row]
    assert len(dev) == 7  # before the first epoch and after each of six
    assert max(dev) > dev[0] + 0.05
    losses = [row["loss"] for row in rows if "loss" in row]
    assert [row["step"] for row in rows if "loss" in row] == list(range(1, 31))
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    kept = folders.load(whole)
    ranks = Judge(kept, tiny.pairs(2)).ranks(kept)
    assert float((1 / ranks).mean()) == pytest.approx(max(dev), abs=1e-6)
    assert all(1 < a < 2 for row in rows if "alpha" in row for head in row["alpha"].values() for a in head)


def test_words_are_dropped_at_their_rate_and_keep_their_order() -> None:
    whole = [list(range(5_000)), [7]]
    assert loop._without_some(whole, 0, np.random.default_rng(0)) is whole
    left = loop._without_some(whole, 0.3, np.random.default_rng(0))[0]
    assert len(left) == pytest.approx(3_500, abs=150)
    assert list(left) == sorted(left)


def test_killed_and_resumed_equals_uninterrupted(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    with subprocess.Popen([sys.executable, TINY, out], stderr=subprocess.DEVNULL) as process:
        metrics = out / "training/metrics.jsonl"
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None:
            if metrics.exists() and metrics.read_text().count('"loss"') >= 13:
                break
        process.send_signal(signal.SIGKILL)
    folders.load(out)  # any written model is usable
    tiny.run(out)
    assert lines(out) == lines(whole)
    for name in ("model.safetensors", "config.json", "tokenizer.json", "training/checkpoint.safetensors"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()


def test_resuming_needs_the_same_settings(whole: Path) -> None:
    other = dataclasses.replace(tiny.CONFIG, lr=0.5)
    with pytest.raises(InputError, match=r"lr: 0.02, now 0.5"):
        train(tiny.encoder(), tiny.pairs(1), tiny.pairs(2), other, whole, resume=True)
    with pytest.raises(InputError, match="data"):
        train(tiny.encoder(), tiny.pairs(3), tiny.pairs(2), tiny.CONFIG, whole, resume=True)


def test_a_finished_training_resumes_to_its_end(whole: Path) -> None:
    before = (whole / "model.safetensors").read_bytes()
    report = train(tiny.encoder(), tiny.pairs(1), tiny.pairs(2), tiny.CONFIG, whole, resume=True)
    assert report.steps == 30
    assert (whole / "model.safetensors").read_bytes() == before


def test_a_damaged_checkpoint_is_named(whole: Path, tmp_path: Path) -> None:
    broken = tmp_path / "training/checkpoint.safetensors"
    broken.parent.mkdir()
    broken.write_bytes((whole / "training/checkpoint.safetensors").read_bytes()[:100])
    with pytest.raises(InputError, match=r"checkpoint\.safetensors is damaged"):
        train(tiny.encoder(), tiny.pairs(1), None, tiny.CONFIG, tmp_path, resume=True)


CHANGES: list[dict[str, Any]] = [
    {"loss": "triplet"}, {"precision": "bfloat16"}, {"weight_decay": 0.1},
    {"sparse": True}, {"crop": True, "max_length": 6}, {"cloze": 8, "cloze_window": 3},
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_other_settings_train_too(tmp_path: Path, change: dict[str, Any]) -> None:
    config = dataclasses.replace(tiny.CONFIG, epochs=4, **change)
    report = train(tiny.encoder(), tiny.pairs(1), tiny.pairs(2), config, tmp_path / "m")
    start = lines(tmp_path / "m")[0]["dev_mrr"]
    assert report.best > start


def test_early_stopping(tmp_path: Path) -> None:
    config = dataclasses.replace(tiny.CONFIG, lr=1e-9, patience=2)
    report = train(tiny.encoder(), tiny.pairs(1), tiny.pairs(2), config, tmp_path / "m")
    assert report.epochs < 6


def test_sparse_updates_resume_exactly(tmp_path: Path) -> None:
    config = dataclasses.replace(tiny.CONFIG, epochs=2, sparse=True)
    tiny.run(tmp_path / "whole", config)
    interrupted(tmp_path / "parts", config, after=4)
    tiny.run(tmp_path / "parts", config)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert weights[0] == weights[1]


def interrupted(out: Path, config: TrainingConfig, after: int) -> None:
    """Train until step `after` is done."""
    step = loop._Trainer._step

    def stopping(self: Any, batch: Batch) -> float:
        if self.progress.step == after:
            raise KeyboardInterrupt
        return step(self, batch)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(loop._Trainer, "_step", stopping)
        tiny.run(out, config)


def test_a_sparse_step_moves_only_the_tokens_of_the_batch() -> None:
    module = tiny.encoder().module
    optimizer = Optimizer(module, dataclasses.replace(tiny.CONFIG, sparse=True))
    before = module.embedding.weight.detach().clone()
    module(torch.tensor([[3, 4]]), torch.ones(1, 2, dtype=torch.bool)).sum().backward()
    optimizer.set_rate(1)
    optimizer.step(clip=1e-3)
    moved = (module.embedding.weight != before).any(1).nonzero().flatten().tolist()
    assert moved == [3, 4]


@pytest.mark.parametrize("sparse", [False, True])
def test_clipping_is_pytorchs(sparse: bool) -> None:
    ids, mask = torch.tensor([[3, 4, 3], [5, 3, 4]]), torch.ones(2, 3, dtype=torch.bool)
    ours, theirs = tiny.encoder().module, tiny.encoder().module
    optimizer = Optimizer(ours, dataclasses.replace(tiny.CONFIG, sparse=sparse))
    for module in (ours, theirs):
        module(ids, mask).square().sum().backward()
    optimizer.set_rate(0)
    optimizer.step(clip=0.01)
    torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.01)
    for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(own.grad.to_dense(), other.grad)


def test_a_teacher_is_followed(tmp_path: Path) -> None:
    """Nothing can be learned from random links, but it can from a teacher's cosines."""
    data, rng = tiny.pairs(1), np.random.default_rng(0)
    links = list(enumerate(rng.permutation(40).tolist()))
    right = np.eye(40, dtype=np.float32)
    config = dataclasses.replace(tiny.CONFIG, teacher_weight=5.0)
    scores = []
    for teacher in (None, Teacher(right, right)):
        encoder, out = tiny.encoder(), tmp_path / str(teacher is None)
        train(encoder, dataclasses.replace(data, links=links), None, config, out, teacher=teacher)
        scores.append(float((1 / Judge(encoder, data).ranks(encoder)).mean()))
    assert scores[1] > scores[0] + 0.05


def test_documents_teach_themselves(tmp_path: Path) -> None:
    """Random links teach nothing; a window of a document finds the remainder, and so texts find documents."""
    data, rng = tiny.pairs(1), np.random.default_rng(0)
    links = list(enumerate(rng.permutation(40).tolist()))
    scores = []
    for cloze in (0, 40):
        encoder, config = (
            tiny.encoder(),
            dataclasses.replace(tiny.CONFIG, cloze=cloze, cloze_window=4, max_length=20),
        )
        train(encoder, dataclasses.replace(data, links=links), None, config, tmp_path / str(cloze))
        scores.append(float((1 / Judge(encoder, data).ranks(encoder)).mean()))
    assert scores[1] > scores[0]


def trainer(data: Pairs, out: Path, **change: Any) -> Any:
    """Return a training run that has not started; without word dropout, so that its batches are predictable."""
    config = dataclasses.replace(tiny.CONFIG, word_dropout=0.0, **change)
    return loop._Trainer(tiny.encoder(), data, None, config, out, None)


def test_cloze_takes_half_of_a_short_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = ["w1 w2 w3 w4 w5 w6 w7 w8", "w11 w12 w13 w14 w15", "w21", ""]
    data = Pairs(["w1", "w2"], documents, [(0, 1), (1, 0)])
    training = trainer(data, tmp_path, cloze=4, cloze_window=30)
    asked: list[list[list[int]]] = []
    encode = training._vectors

    def listen(ids: Any) -> torch.Tensor:
        asked.append([list(text) for text in ids])
        vectors: torch.Tensor = encode(ids)
        return vectors

    monkeypatch.setattr(training, "_vectors", listen)
    loss = training._cloze(np.random.default_rng(0))
    windows, rests = asked
    assert sorted((len(window), len(rest)) for window, rest in zip(windows, rests, strict=True)) == [
        (2, 3),
        (4, 4),
    ]
    whole = {tuple(sorted(training.documents[row])) for row in (0, 1)}
    assert {tuple(sorted(w + r)) for w, r in zip(windows, rests, strict=True)} == whole
    assert all(np.diff(window).tolist() == [1] * (len(window) - 1) for window in windows)  # neighbours
    assert loss.item() > 0
    empty = trainer(Pairs(["w1"], ["", "w1"], [(0, 1)]), tmp_path, cloze=4)
    assert empty.long == []
    train(empty.encoder, Pairs(["w1"], ["", "w1"], [(0, 1)]), None, empty.config, tmp_path / "m")


def test_dev_is_judged_against_rivals() -> None:
    documents = [f"word{i} filler" for i in range(50)]
    pairs = Pairs(["word40 word3", "word7 word9"], documents, [(0, 40), (1, 7)])
    small = dev_sample(pairs, 4)
    assert small.documents == [documents[i] for i in (3, 7, 9, 40)]
    assert [(small.texts[t], small.documents[d]) for t, d in small.links] == [
        ("word40 word3", "word40 filler"),
        ("word7 word9", "word7 filler"),
    ]
    assert dev_sample(pairs, 50) is pairs
    assert dev_sample(pairs, 1).documents == [documents[7], documents[40]]


def test_negatives_are_bm25s_best_that_nothing_links() -> None:
    documents = ["red fox", "red fox runs", "blue whale", "fox", "red"]
    pairs = Pairs(["a red fox", "whale", "unlinked fox"], documents, [(0, 1), (1, 2)])
    assert mine_negatives(pairs, depth=3) == [[0, 3], [], []] or mine_negatives(pairs, depth=3) == [
        [0, 4],
        [],
        [],
    ]


def test_hard_negatives_join_the_batch(tmp_path: Path) -> None:
    given = dataclasses.replace(tiny.pairs(1), negatives=[[(i + 1) % 40] for i in range(40)])
    with_them, without = (trainer(given, tmp_path, hard_negatives=hard) for hard in (1, 0))
    for batch, plain in zip(with_them.batches.epoch(0), without.batches.epoch(0), strict=True):
        texts, documents = batch.texts.tolist(), batch.documents.tolist()
        assert texts == plain.texts.tolist() == plain.documents.tolist()
        assert set(documents) == {*texts, *((text + 1) % 40 for text in texts)}
        links = {(texts[i], documents[j]) for i, j in zip(*batch.positives.nonzero(), strict=True)}
        assert links == {(text, text) for text in texts}
        rng = np.random.default_rng(0)
        assert with_them._loss(batch, rng) > without._loss(plain, rng)  # more documents to be confused with


@pytest.mark.parametrize("anchor", ["text", "document", "both"])
@pytest.mark.parametrize("margin", [0.05, 0.4])
def test_the_triplet_loss_is_that_of_its_definition(tmp_path: Path, margin: float, anchor: str) -> None:
    losses = []
    for miner in ("all", "multi-similarity"):
        training = trainer(tiny.pairs(1), tmp_path, loss="triplet", miner=miner, margin=margin, anchor=anchor)
        batch = training.batches.epoch(0)[0]
        vectors = [
            training.encoder.vectors([ids[row] for row in rows]).detach().numpy().astype(np.float64)
            for ids, rows in ((training.texts, batch.texts), (training.documents, batch.documents))
        ]
        cosines, linked = vectors[0] @ vectors[1].T, batch.positives
        other = ~linked
        if anchor == "document":  # Danovitch's equation 7
            cosines, linked, other = cosines.T, linked.T, other.T
        elif anchor == "both":  # Danovitch's code; here a linked text and document have the same number
            both, number = np.concatenate(vectors), [*batch.texts, *batch.documents]
            same = np.equal.outer(number, number)
            cosines, linked, other = both @ both.T, same & ~np.eye(len(both), dtype=bool), ~same
        expected = slow_triplet_loss(cosines, linked, other, miner, margin)
        losses.append(training._loss(batch, np.random.default_rng(0)).item())
        assert losses[-1] == pytest.approx(expected, abs=1e-5)
    # A miner's tolerance covers a small margin: the pairs it drops have no loss.
    assert (losses[0] != pytest.approx(losses[1], abs=1e-3)) == (margin > 0.1)


def test_the_multi_similarity_loss_is_that_of_the_pairs_that_the_miner_keeps(tmp_path: Path) -> None:
    training = trainer(tiny.pairs(1), tmp_path, loss="multi-similarity")
    batch = training.batches.epoch(0)[0]
    texts, documents = (
        training.encoder.vectors([ids[row] for row in rows]).detach().numpy().astype(np.float64)
        for ids, rows in ((training.texts, batch.texts), (training.documents, batch.documents))
    )
    expected = []
    for row, linked in zip(texts @ documents.T, batch.positives, strict=True):
        near = [s for s in row[linked] if s - 0.1 < row[~linked].max()]
        far = [s for s in row[~linked] if near and s + 0.1 > row[linked].min()]
        pulled = np.log1p(sum(np.exp(-2 * (s - 0.5)) for s in near)) / 2
        expected.append(pulled + np.log1p(sum(np.exp(50 * (s - 0.5)) for s in far)) / 50)
    loss = training._loss(batch, np.random.default_rng(0)).item()
    assert loss == pytest.approx(np.mean(expected), abs=1e-5)


def slow_triplet_loss(
    cosines: np.ndarray[Any, Any],
    linked: np.ndarray[Any, Any],
    other: np.ndarray[Any, Any],
    miner: str,
    margin: float,
) -> float:
    """Return the mean over triplets of unit vectors whose loss is not 0; their squared distance is 2 − 2 cos."""
    found = []
    for row, positives, negatives in zip(cosines, linked, other, strict=True):
        for near in row[positives]:
            for far in row[negatives]:
                hard = near - 0.1 < row[negatives].max() and far + 0.1 > row[positives].min()
                if hard or miner == "all":
                    found.append((2 - 2 * near) ** 0.5 - (2 - 2 * far) ** 0.5 + margin)
    return float(np.mean([loss for loss in found if loss > 0]))


def test_a_loss_that_is_no_number_stops_with_a_remedy(tmp_path: Path) -> None:
    encoder = tiny.encoder()
    with torch.no_grad():
        encoder.module.embedding.weight[5:] = torch.nan
    with pytest.raises(LinkerError, match=r"lower training\.lr"):
        train(encoder, tiny.pairs(1), None, tiny.CONFIG, tmp_path / "m")


def test_learning_rate_rises_and_falls() -> None:
    scales = [learning_rate_scale(step, 100, 0.1) for step in range(100)]
    assert scales[0] == pytest.approx(1 / 11)
    assert max(scales) == scales[10] == 1
    assert scales[-1] == pytest.approx(1 / 90)
    assert learning_rate_scale(0, 1, 0.0) == 1


def test_without_warm_up_the_rate_starts_at_its_height_and_the_schedule_says_whether_it_falls() -> None:
    assert [learning_rate_scale(step, 4, 0.0) for step in range(4)] == [1, 0.75, 0.5, 0.25]
    assert [learning_rate_scale(step, 4, 0.0, "constant") for step in range(4)] == [1, 1, 1, 1]
    assert [learning_rate_scale(step, 4, 0.5, "constant") for step in range(4)] == [1 / 3, 2 / 3, 1, 1]
