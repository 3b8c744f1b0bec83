"""The star against a double loop written from the definition, and that padding never matters."""

import dataclasses
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from linker.encoders.bag import BagOfVectors
from linker.encoders.configs import PRESETS, BagConfig, StarConfig
from linker.encoders.entmax import entmax
from linker.encoders.star import StarTransformer, length_free

SMALL = StarConfig(dim=12, heads=3, head_dim=5)
VARIANTS = {
    "paper": SMALL,
    "two layers": dataclasses.replace(SMALL, layers=2),
    "no token key": dataclasses.replace(SMALL, layers=2, token_key=False, window=1),
    "recommended": dataclasses.replace(PRESETS["recommended"], dim=12, heads=3, head_dim=5, layers=2),
    "contrast, uneven heads": dataclasses.replace(
        PRESETS["recommended"], dim=12, heads=5, leaky_relu=True, layer_norm=True
    ),
    "everything": dataclasses.replace(
        SMALL, layers=3, residual=True, layer_norm=True, leaky_relu=True, max_weight=0.3, window=3, alpha=1.8
    ),
    "the author's": dataclasses.replace(SMALL, layers=2, first_token_key=True),
    "no window": dataclasses.replace(SMALL, window=0),
    "cosine": dataclasses.replace(SMALL, layers=2, score="cosine"),
    "relay without itself": dataclasses.replace(SMALL, layers=2, relay_key=False),
    "the package's entmax": dataclasses.replace(SMALL, layers=2, entmax="package"),
}


def build(config: StarConfig) -> StarTransformer:
    """Return a double-precision model with every parameter random, including zero-initialised ones."""
    model = StarTransformer(config, tokens=20).double()
    g = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=g, dtype=torch.float64) * 0.5)
    return model


def naive(model: StarTransformer, config: StarConfig, ids: list[int]) -> Tensor:
    """Encode one text without padding, token by token and head by head."""
    words = [model.embedding.weight[i] for i in ids]
    relay = sum(words, torch.zeros(config.dim, dtype=torch.float64)) / max(len(words), 1)
    ring = list(words)
    for number, layer in enumerate(model.layers):
        assert isinstance(layer.ring, torch.nn.Module)
        new = []
        for i in range(len(ring)):
            near = [ring[j] for j in range(i - config.window, i + config.window + 1) if 0 <= j < len(ring)]
            own = [words[i]] if config.token_key and (number > 0 or config.first_token_key) else []
            new.append(attend(layer.ring, config, ring[i], [*near, relay, *own]))
        ring = [finish(config, layer.ring_norm, h, n) for h, n in zip(ring, new, strict=True)]
        own = [relay] if config.relay_key else []
        seen = attend(layer.relay, config, relay, [*own, *ring], config.contrast is not None)
        kept = (
            config
            if config.contrast is None
            else dataclasses.replace(config, residual=False, leaky_relu=False)
        )
        relay = finish(kept, layer.relay_norm, relay, seen)
    top = torch.stack(ring).amax(0) if ring else torch.zeros_like(relay)
    return (relay + top * (1 if model.max_weight is None else model.max_weight)) / 2


def attend(
    module: Any, config: StarConfig, query: Tensor, keys: list[Tensor], length_free: bool = False
) -> Tensor:
    """Attend with one query to a list of vectors."""
    heads = []
    looks = [look(config, x) for x in (query, *keys)]
    size = module.query.out_features // config.heads
    for h in range(config.heads):
        rows = slice(h * size, (h + 1) * size)
        q = module.query.weight[rows] @ looks[0] + module.query.bias[rows]
        keys_of_head = [module.key.weight[rows] @ k for k in looks[1:]]
        if not keys_of_head:
            # a relay that sees nothing: only a finite result is promised
            heads.append(module.value.bias[rows])
            continue
        scores = torch.stack([q @ k for k in keys_of_head]) / math.sqrt(size)
        if config.score == "cosine":
            scores = torch.stack([q @ k / (q.norm() * k.norm()).clamp(min=1e-12) for k in keys_of_head])
        if length_free:
            scores = scores * len(keys) ** (1 - module.alpha[h])
        values = torch.stack([module.value.weight[rows] @ k + module.value.bias[rows] for k in keys])
        heads.append(entmax(scores, module.alpha[h]) @ values)
    out: Tensor = module.out(torch.cat(heads))
    return out


def look(config: StarConfig, x: Tensor) -> Tensor:
    """Return the inputs of queries and keys."""
    if not config.pre_norm:
        return x
    centred = x - x.mean()
    return centred / (centred.square().mean() + 1e-5).sqrt()


def finish(config: StarConfig, norm: object, old: Tensor, new: Tensor) -> Tensor:
    new = torch.where(new > 0, new, 0.01 * new) if config.leaky_relu else new
    return norm(old + new if config.residual else new)  # type: ignore[operator, no-any-return]  # a module


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("length", [0, 1, 2, 3, 9])
def test_equals_the_double_loop(name: str, length: int) -> None:
    model = build(VARIANTS[name])
    ids = torch.randint(2, 20, (3, length), generator=torch.Generator().manual_seed(length))
    found = model(ids, torch.ones_like(ids, dtype=torch.bool))
    for row, text in zip(found, ids.tolist(), strict=True):
        assert (row - naive(model, VARIANTS[name], text)).abs().max() < 1e-9


@pytest.mark.parametrize(
    "model", [*(build(c) for c in VARIANTS.values()), BagOfVectors(BagConfig(12), 20).double()]
)
def test_padding_and_batch_mates_change_nothing(model: torch.nn.Module) -> None:
    lengths = [5, 0, 1, 9]
    ids = torch.randint(2, 20, (4, 14), generator=torch.Generator().manual_seed(1))
    mask = torch.arange(14)[None] < torch.tensor(lengths)[:, None]
    together = model(ids, mask)  # tokens at masked places do not matter either: here they are not even PAD
    for row, length in enumerate(lengths):
        alone = model(ids[row : row + 1, :length], torch.ones(1, length, dtype=torch.bool))
        assert (together[row] - alone[0]).abs().max() < 1e-12


def test_an_empty_text_and_an_empty_batch_are_finite() -> None:
    for config in VARIANTS.values():
        model = build(config).float()
        assert torch.isfinite(
            model(torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, 3, dtype=torch.bool))
        ).all()
        assert model(torch.zeros(0, 3, dtype=torch.long), torch.zeros(0, 3, dtype=torch.bool)).shape == (
            0,
            12,
        )


@pytest.mark.parametrize("options", [{"layers": 2}, {"pre_norm": True, "contrast": 1.0}])
def test_gradcheck_through_every_parameter(options: dict[str, Any]) -> None:
    model = build(dataclasses.replace(SMALL, dim=4, heads=2, head_dim=2, **options))
    ids = torch.tensor([[2, 3, 4], [5, 0, 0]])
    parameters = dict(model.named_parameters())

    def call(*values: Tensor) -> Tensor:
        given = dict(zip(parameters, values, strict=True))
        return torch.func.functional_call(model, given, (ids, ids > 0))  # type: ignore[no-any-return]  # a model's output

    inputs = tuple(p.detach().requires_grad_() for p in parameters.values())
    assert torch.autograd.gradcheck(call, inputs, eps=1e-6, atol=1e-5, fast_mode=True)


@pytest.mark.parametrize("layers", [1, 2])
def test_memory_is_linear_in_the_length(layers: int) -> None:
    """Count the numbers kept for the backward pass: twice the length, at most twice the numbers."""
    model = StarTransformer(dataclasses.replace(SMALL, layers=layers), 20)

    def kept(length: int) -> tuple[int, int]:
        sizes: dict[int, int] = {}

        def note(x: Tensor) -> Tensor:
            sizes[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
            return x

        ids = torch.ones(1, length, dtype=torch.long)
        with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
            out = model(ids, ids > 0)
        assert out.requires_grad
        return sum(sizes.values()), max(sizes.values())

    (short, _), (long, largest) = kept(500), kept(1000)
    assert long < 2.05 * short
    assert largest < 1000 * 1000  # bytes: smaller than any length × length matrix


@pytest.mark.parametrize("start", [{"contrast": None}, {"contrast": 0.0}])
def test_the_model_can_start_as_the_mean_of_vectors(start: dict[str, Any]) -> None:
    config = dataclasses.replace(PRESETS["recommended"], dim=12, heads=3, head_dim=5, max_weight=0.0, **start)
    star, bag = StarTransformer(config, 20), BagOfVectors(BagConfig(12), 20)
    bag.embedding.load_state_dict(star.embedding.state_dict())
    ids = torch.tensor([[2, 3, 4, 5], [7, 8, 0, 0]])
    assert torch.allclose(star(ids, ids > 0) * 2, bag(ids, ids > 0), atol=1e-6)


@pytest.mark.parametrize("contrast", [1.0, 6.0])
def test_the_relay_starts_at_what_the_mean_does_not_say(contrast: float) -> None:
    """With one head: weights entmax(−contrast · cosine with the mean · n^(1 − α)), found here by bisection."""
    torch.manual_seed(0)
    config = dataclasses.replace(PRESETS["recommended"], dim=12, heads=1, contrast=contrast)
    model = StarTransformer(config, 20).double()
    ids = torch.tensor([[2, 3, 4, 5, 3, 9, 11, 2, 2]])
    words = model.embedding.weight[ids[0]].detach()
    keys = torch.cat([words.mean(0, keepdim=True), words])
    looks = torch.stack([look(config, key) for key in keys])
    scores = -contrast * (looks @ looks[0]) / 12 * len(keys) ** -0.5
    low, high = scores.max() / 2 - 1, scores.max() / 2
    for _ in range(100):
        middle = (low + high) / 2
        enough = (scores / 2 - middle).clamp(min=0).square().sum() >= 1
        low, high = (middle, high) if enough else (low, middle)
    weights = (scores / 2 - low).clamp(min=0).square()
    assert (weights == 0).any() == (contrast == 6)
    assert torch.allclose(model(ids, ids > 0)[0] * 2, weights @ keys, atol=1e-6)


@pytest.mark.parametrize("alpha", [1.001, 1.3, 1.5, 1.99])
def test_length_free_scores_give_a_repeated_key_its_share(alpha: float) -> None:
    g = torch.Generator().manual_seed(1)
    scores, alphas = torch.randn(2, 1, 7, generator=g, dtype=torch.float64), torch.tensor([alpha]).double()
    inside = torch.tensor([[[True] * 7], [[True] * 4 + [False] * 3]])

    def weights(times: int) -> Tensor:
        many, kept = scores.repeat(1, 1, times), inside.repeat(1, 1, times)
        return entmax(length_free(many, kept, alphas), alphas[:, None], 2, kept)

    once, thrice = weights(1), weights(3)
    assert (thrice - once.repeat(1, 1, 3) / 3).abs().max() < 1e-9
    plain = entmax(scores.repeat(1, 1, 3), alphas[:, None], 2, inside.repeat(1, 1, 3))
    assert alpha < 1.1 or (plain - once.repeat(1, 1, 3) / 3).abs().max() > 1e-3


def test_alpha_starts_where_it_is_told_and_stays_inside() -> None:
    model = StarTransformer(dataclasses.replace(SMALL, alpha=1.2), 20)
    assert model.alphas().keys() == {"layers.0.ring", "layers.0.relay"}
    assert model.alphas()["layers.0.ring"] == pytest.approx([1.2] * 3)
    with pytest.raises(ValueError, match="alpha"):
        StarConfig(alpha=2.0)
    with pytest.raises(ValueError, match="needs pre_norm"):
        StarConfig(contrast=1.0)


def test_a_clamped_alpha_starts_anywhere_and_stops_at_either_bound_and_can_leave_it() -> None:
    model = StarTransformer(PRESETS["paper"], 20)
    for alphas in model.alphas().values():
        assert all(1 < a < 2 for a in alphas)
        assert max(alphas) - min(alphas) > 0.1
    relay = model.attentions()["layers.0.relay"]
    ids, mask = torch.tensor([[3, 4, 5, 6]]), torch.ones(1, 4, dtype=torch.bool)
    for outside, bound in ((2.5, 2.0), (0.5, 1.0)):
        with torch.no_grad():
            relay.raw_alpha.fill_(outside)
        (
            model(ids, mask).square().sum() + model(ids, mask).sum()
        ).backward()  # twice, as for texts and documents
        assert relay.alpha.tolist() == pytest.approx([bound] * 10, abs=1e-4)
        assert relay.raw_alpha.grad is not None
        assert relay.raw_alpha.grad.any()


@pytest.mark.parametrize("name", ["recommended", "everything"])
@pytest.mark.parametrize("trained", [False, True])
def test_skipping_an_untrained_ring_changes_nothing(name: str, trained: bool) -> None:
    config = VARIANTS[name]
    model = StarTransformer(config, tokens=20)
    if trained:  # in one entry of one bias
        with torch.no_grad():
            model.layers[0].ring.out.bias[3] = 0.5  # type: ignore[union-attr, operator]
    ids = torch.randint(2, 20, (3, 9), generator=torch.Generator().manual_seed(2))
    mask = torch.ones_like(ids, dtype=torch.bool)
    with_gradients = model(ids, mask)  # nothing is skipped
    with torch.inference_mode():
        assert torch.equal(model(ids, mask), with_gradients)


def test_a_ring_that_is_watched_runs() -> None:
    model = StarTransformer(VARIANTS["recommended"], tokens=20)
    seen: list[Tensor] = []

    def hook(weights: Tensor, inside: Tensor) -> Tensor:
        seen.append(weights)
        return weights

    model.attentions()["layers.0.ring"].hook = hook
    with torch.inference_mode():
        model(torch.tensor([[2, 3]]), torch.ones(1, 2, dtype=torch.bool))
    assert seen
