"""Siamese encoders of both kinds: their outputs, what they learn, and what stays fixed."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from linker.base.errors import InputError
from linker.papers.news.siamese import (
    FrozenSiamese,
    RememberingEncoder,
    SiameseConfig,
    TunedSiamese,
    WeightedPairs,
    cosines,
    train_frozen,
    train_tuned,
)
from linker.papers.news.similarity import examples, siamese_trainer
from linker.papers.news.similarity_config import configure
from linker.scoring.pairs.backbone import load_backbone
from tests.helpers import HashEncoder, tiny_bert
from tests.papers.pairs.news.news_data import STORIES, news

PAIRS = news(24)
BASE = RememberingEncoder(HashEncoder(16))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = [word for story in STORIES for word in story.split()]
    return tiny_bert(tmp_path_factory.mktemp("bert") / "tiny", words)


def loss(siamese: FrozenSiamese | TunedSiamese, given: WeightedPairs) -> float:
    vectors = siamese.encode(given.texts)
    cosine = (vectors[given.first] * vectors[given.second]).sum(1)
    return float(((cosine - given.similarities) ** 2).mean())


def test_examples_name_each_text_once() -> None:
    pseudo = [PAIRS[0]]
    given = examples(PAIRS, pseudo, 0.25)
    assert len(given) == 25
    assert len(set(given.texts)) == len(given.texts)
    assert given.texts[given.first[3]] == PAIRS[3].first.full
    assert given.texts[given.second[24]] == PAIRS[0].second.full
    assert given.weights.tolist() == [1.0] * 24 + [0.25]
    assert given.similarities[0] == (4 - (PAIRS[0].score or 0)) / 3


def test_a_frozen_one_begins_as_its_backbone_centred_on_the_training_texts_and_learns() -> None:
    base = BASE
    given = examples(PAIRS)
    zero = FrozenSiamese(base, np.zeros(16, np.float32), np.zeros((16, 16), np.float32))
    assert zero.encode(given.texts) == pytest.approx(base.encode(given.texts), abs=1e-6)
    trained = train_frozen(base, given, SiameseConfig(epochs=40, batch_size=8, lr=1e-2))
    assert loss(trained, given) < 0.5 * loss(zero, given)
    vectors = trained.encode(given.texts[:3])
    slow = [(v + trained.shift) @ (np.eye(16) + trained.deviation) for v in base.encode(given.texts[:3])]
    assert vectors == pytest.approx(np.array([v / np.linalg.norm(v) for v in slow]), abs=1e-5)
    still = train_frozen(base, given, SiameseConfig(lr=1e-12, epochs=1))
    vectors = base.encode(given.texts)
    used = vectors[np.concatenate([given.first, given.second])]
    assert still.shift == pytest.approx(-used.mean(0), abs=1e-5)


def test_the_same_seed_gives_the_same_weights_and_weight_0_teaches_nothing() -> None:
    base, config = BASE, SiameseConfig(epochs=2, batch_size=100, dropout=0.0)
    a, b = (train_frozen(base, examples(PAIRS), config) for _ in range(2))
    assert np.array_equal(a.deviation, b.deviation)
    silent = examples(PAIRS, PAIRS, 0.0)
    c = train_frozen(base, silent, config)
    # half the loss: Adam is almost scale-invariant
    assert c.deviation == pytest.approx(a.deviation, abs=2e-5)


def test_a_tuned_one_takes_the_mean_of_the_tokens(tiny: Path) -> None:
    backbone = load_backbone(tiny)
    siamese = TunedSiamese(backbone, 16, batch_size=2)
    texts = ["storm floods harbour", "vote", "goal striker league coach"]
    found = siamese.encode(texts)
    for text, vector in zip(texts, found, strict=True):
        with torch.no_grad():
            states = backbone.module(**backbone.tokens([text], max_length=16)).last_hidden_state[0]
        mean = states.mean(0)
        assert vector == pytest.approx((mean / mean.norm()).numpy(), abs=1e-5)


def test_a_step_lowers_the_loss_and_repeats(tiny: Path) -> None:
    given = examples(PAIRS[:16])
    before = loss(TunedSiamese(load_backbone(tiny), 32), given)
    config = SiameseConfig(str(tiny), frozen=False, max_length=32, epochs=2, batch_size=8, lr=1e-3)
    one, two = (train_tuned(load_backbone(tiny), given, config) for _ in range(2))
    assert loss(one, given) < before
    assert np.array_equal(one.encode(given.texts[:4]), two.encode(given.texts[:4]))


def test_only_the_top_layers_learn(tiny: Path) -> None:
    start = load_backbone(tiny).module.state_dict()
    config = SiameseConfig(str(tiny), frozen=False, layers=1, epochs=1, lr=1e-3, max_length=32)
    trained = train_tuned(load_backbone(tiny), examples(PAIRS[:8]), config).backbone.module.state_dict()
    moved = {name for name in start if not torch.equal(start[name], trained[name])}
    assert moved
    assert all(name.startswith("encoder.layer.1.") for name in moved)


def test_cosines_encode_each_text_once() -> None:
    class Counting(HashEncoder):
        seen = 0

        def encode(self, texts, **options):  # type: ignore[no-untyped-def]  # the parent's signature
            Counting.seen += len(texts)
            return super().encode(texts, **options)

    remembering = RememberingEncoder(Counting(8))
    siamese = FrozenSiamese(remembering, np.zeros(8, np.float32), np.zeros((8, 8), np.float32))
    found = cosines(siamese, ["a", "b", "a"], ["a", "c", "d"])
    assert found[0] == pytest.approx(1)
    assert Counting.seen == 4
    cosines(siamese, ["a"], ["b"])
    assert Counting.seen == 4
    assert remembering.encode([]).shape == (0, 8)


def test_a_backbone_that_cannot_be_had_is_an_error_that_says_what_to_do() -> None:
    config = configure("paper", {"backbone": "no/such-model"})
    with pytest.raises(InputError, match=r"there is no backbone 'no/such-model'.*Give a folder"):
        siamese_trainer(config)(PAIRS, ())
    with pytest.raises(InputError, match="no such"):
        siamese_trainer(configure("recommended", {"backbone": "/no such/folder"}))


@pytest.mark.parametrize("frozen", [True, False])
def test_pseudo_labelled_pairs_come_first_or_among_the_graded(tiny: Path, frozen: bool) -> None:
    """In stages, the graded pairs start from the model that the pseudo-labelled pairs left, as in two calls."""
    gold, pseudo = PAIRS[:8], PAIRS[8:16]
    asked = {"backbone": str(tiny), "max_length": 16, "lr": 1e-3, "epochs": 1, "frozen": frozen}
    config = configure("recommended", asked)
    encoder = BASE if frozen else None
    texts = [pair.first.full for pair in gold]
    found = siamese_trainer(config, encoder)(gold, pseudo).encode(texts)
    if frozen:
        first = train_frozen(BASE, examples(pseudo), config.siamese)
        second: FrozenSiamese | TunedSiamese = train_frozen(BASE, examples(gold), config.siamese, first)
    else:
        backbone = train_tuned(load_backbone(tiny), examples(pseudo), config.siamese).backbone
        second = train_tuned(backbone, examples(gold), config.siamese)
    assert np.array_equal(found, second.encode(texts))
    mixed = siamese_trainer(dataclasses.replace(config, pseudo_epochs=0), encoder)
    assert not np.array_equal(found, mixed(gold, pseudo).encode(texts))
    assert not np.array_equal(mixed(gold, ()).encode(texts), mixed(gold, pseudo).encode(texts))
