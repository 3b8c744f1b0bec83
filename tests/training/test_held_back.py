"""Key inputs that learn from links held back from the word vectors: which links, the effects, and refusals."""

import dataclasses
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from linker.base.config import load
from linker.base.errors import ConfigError
from linker.encoders import folder as folders
from linker.encoders.configs import PRESETS
from linker.encoders.entmax import entmax
from linker.encoders.star import StarTransformer
from linker.encoders.text import padded
from linker.encoders.tokens import Vocabulary, WordTokenizer
from linker.training import held_back, ready
from linker.training.batches import Pairs
from linker.training.compact_star import CompactStar, CountedEntmax, Types
from linker.training.config import EncoderConfig, TrainConfig, TrainingConfig
from linker.training.run import build_encoder, count_documents, run

OPTIONS = [
    "encoder.key_inputs=true", "training.mean_epochs=2", "training.held_back=0.4", "training.inputs_lr=0",
    "training.alpha_lr=0",
]  # fmt: skip


@given(
    st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2),
    st.floats(0.05, 0.95),
    st.integers(0, 9),
)
def test_no_text_is_on_both_sides(links: set[tuple[int, int]], share: float, seed: int) -> None:
    pairs = Pairs(["t"] * 10, ["d"] * 10, sorted(links))
    texts = {text for text, _ in links}
    try:
        seen, held = held_back.halves(pairs, share, seed)
    except ConfigError:
        assert round(share * len(texts)) in (0, len(texts))
        return
    assert sorted([*seen.links, *held.links]) == sorted(links)
    sides = [{text for text, _ in part.links} for part in (seen, held)]
    assert not sides[0] & sides[1] and len(sides[1]) == round(share * len(texts))


def repeated_noise() -> Pairs:
    """Return texts and documents that share a word that occurs once, among other, repeated words."""
    rng = np.random.default_rng(0)

    def text(key: int) -> str:
        return " ".join(
            rng.permutation([f"key{key}", *np.repeat([f"noise{rng.integers(12)}" for _ in range(3)], 4)])
        )

    links = [(i, i) for i in range(48)]
    return Pairs([text(i) for i in range(48)], [text(i) for i in range(48)], links)


def test_what_repeats_without_meaning_loses_weight_and_nothing_else_changes() -> None:
    pairs = repeated_noise()
    words = WordTokenizer(Vocabulary.build([*pairs.texts, *pairs.documents], min_count=1, max_size=200))
    vectors = np.random.default_rng(1).normal(0, 1 / 6, (words.size, 32)).astype(np.float32)
    vectors[0] = 0
    model = dataclasses.replace(PRESETS["recommended"], key_inputs=True)
    found = []
    for _ in range(2):
        encoder = build_encoder(EncoderConfig(model, 512), words, vectors, 0)
        count_documents(encoder, pairs.documents)
        before = {name: value.clone() for name, value in encoder.module.state_dict().items()}
        held_back.learn(encoder, vectors, pairs, TrainingConfig(mean_epochs=6, cloze=8))
        after = encoder.module.state_dict()
        changed = {name for name, value in after.items() if not torch.equal(value, before[name])}
        assert changed == {"key_inputs.weight", "layers.0.relay.raw_alpha"}
        found.append(after["key_inputs.weight"])
    assert torch.equal(*found)
    idf, count, _ = found[0]
    assert (idf > 0.05).all() and (count < -0.05).all()


def test_a_training_holds_links_back_and_keeps_what_they_taught(config: Path) -> None:
    folder = run(load(config, TrainConfig, OPTIONS))
    module = folders.load(folder).module
    assert isinstance(module, StarTransformer) and module.key_inputs is not None
    assert module.key_inputs.weight.abs().min() > 0
    assert (folder / "training/mean-of-part/config.json").exists()
    assert run(load(config, TrainConfig, OPTIONS), resume=True) == folder


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("encoder.key_inputs=false", r"held_back needs encoder\.key_inputs = true"),
        ("encoder.layers=2", r"held_back needs encoder\.layers = 1"),
        ("encoder.max_weight=0.5", r"held_back needs encoder\.max_weight = 0"),
        ("encoder.preset=paper", "held_back needs a star with contrast"),
        ("training.mean_epochs=0", r"held_back needs training\.mean_epochs"),
        ("training.held_back=0.001", "leaves a part without links"),
        ("training.held_back=1.0", "at least 0 and below 1"),
    ],
)
def test_settings_that_cannot_hold_links_back_are_refused(config: Path, option: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run(load(config, TrainConfig, [*OPTIONS, option]))


def test_the_ready_configuration_for_posts_differs_from_ast_by_what_is_held_back() -> None:
    ast, posts = (tomllib.loads(ready.text_of(name)) for name in ("ast", "ast-posts"))
    new = {"held_back": 0.5, "inputs_lr": 0.0, "alpha_lr": 0.0}
    assert posts["training"] == ast["training"] | new
    assert posts["encoder"] == ast["encoder"] | {"key_inputs": True}


def test_counted_entmax_is_entmax_of_repeated_scores() -> None:
    g = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 6, dtype=torch.float64, generator=g).requires_grad_()
    counts = torch.tensor([1, 3, 2, 1, 4, 2])
    alpha = torch.tensor([[1.2], [1.5], [1.9]], dtype=torch.float64, requires_grad=True)
    toward = torch.randn(3, 6, dtype=torch.float64, generator=g)

    def gradients(masses: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad((masses * toward).sum(), (scores, alpha))

    compact = CountedEntmax.apply(scores, alpha, counts.double())
    repeated = entmax(scores.repeat_interleave(counts, dim=1), alpha)
    where = torch.arange(6).repeat_interleave(counts)
    summed = torch.zeros(3, 6, dtype=torch.float64).index_add(1, where, repeated)
    assert (compact - summed).abs().max() < 1e-9
    for ours, theirs in zip(gradients(compact), gradients(summed), strict=True):
        assert (ours - theirs).abs().max() < 1e-8


def test_inputs_of_keys_are_those_of_the_star() -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(50, 60)).astype(np.float32)
    vectors[0] = 0
    config = dataclasses.replace(PRESETS["recommended"], dim=60)
    model = CompactStar(vectors, config, rng.random(50), seed=0)
    star = StarTransformer(dataclasses.replace(config, key_inputs=True), 50)
    star.load_state_dict(model.star.state_dict(), strict=False)
    assert star.key_inputs is not None
    with torch.no_grad():
        model.inputs.copy_(torch.from_numpy(rng.normal(size=(3, 4))))
        star.key_inputs.weight.copy_(model.inputs)
        star.key_inputs.idf.copy_(model.get_buffer("idf"))
    texts = [rng.integers(1, 50, n) for n in (1, 5, 40, 300)]
    found = torch.nn.functional.normalize(star(*padded([t.tolist() for t in texts])), dim=-1)
    assert (model(Types.of(texts)) - found).abs().max() < 5e-6
