"""The CNN against a loop over windows, the GRUs against torch's own bidirectional GRU, text by text without padding."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from linker.encoders.cnn import TextCnn
from linker.encoders.configs import BiGruConfig, CnnConfig, GruConfig
from linker.encoders.gru import Gru

LENGTHS = [5, 0, 1, 9, 2]
CONFIGS: dict[str, CnnConfig | GruConfig] = {
    "cnn": CnnConfig(6, filters=4),
    "cnn of one width": CnnConfig(6, widths=(2,), filters=4, projection=3),
    "cnn of words": CnnConfig(6, widths=(1, 7), filters=3),
    "gru": GruConfig(6, hidden=5),
    "bigru": BiGruConfig(6, hidden=5),
    "gru of two layers": GruConfig(6, hidden=4, layers=2, projection=3),
    "bigru of three layers": BiGruConfig(6, hidden=4, layers=3),
    "bare states": BiGruConfig(6, hidden=4, layers=2, projection=0),
    "mean states": GruConfig(6, hidden=5, pooling="mean"),
    "mean states of two ways": BiGruConfig(6, hidden=4, layers=2, pooling="mean"),
}
GRADCHECKED: dict[str, CnnConfig | GruConfig] = {
    "cnn": CnnConfig(2, widths=(2, 3), filters=2), "gru": GruConfig(3, hidden=2),
    "bigru": BiGruConfig(2, hidden=2), "bare states": BiGruConfig(2, hidden=2, layers=2, projection=0),
    "mean states": BiGruConfig(2, hidden=2, pooling="mean"),
}  # fmt: skip
Model = TextCnn | Gru


def build(config: CnnConfig | GruConfig, tokens: int = 20) -> Model:
    """Return a double-precision model in which even the padding vector is random."""
    torch.manual_seed(0)
    model = TextCnn(config, tokens) if isinstance(config, CnnConfig) else Gru(config, tokens)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.5)
    return model.double().eval()


def naive(model: Model, config: CnnConfig | GruConfig, ids: list[int]) -> Tensor:
    """Encode one text by the definition; a text without tokens has no filter responses or states: zeros."""
    if not ids:
        return torch.zeros(config.output, dtype=torch.float64)
    words = model.embedding.weight[ids]
    if isinstance(model, TextCnn):
        assert isinstance(config, CnnConfig)
        return model.projection(naive_answers(model, config, words))  # type: ignore[no-any-return]  # a module's output
    assert isinstance(config, GruConfig)
    return model.projection(naive_states(model, config, words))  # type: ignore[no-any-return]  # a module's output


def naive_answers(model: TextCnn, config: CnnConfig, words: Tensor) -> Tensor:
    answers = []
    for width, convolution in zip(config.widths, model.convolutions, strict=True):
        weight, bias = convolution.get_parameter("weight"), convolution.get_parameter("bias")
        places = []
        for place in range(len(words)):
            answer: Tensor = bias
            for k in range(width):
                at = place - (width - 1) // 2 + k
                answer = answer + weight[:, :, k] @ words[at] if 0 <= at < len(words) else answer
            places.append(answer.clamp(min=0))
        answers.append(torch.stack(places).amax(0))
    return torch.cat(answers)


def naive_states(model: Gru, config: GruConfig, words: Tensor) -> Tensor:
    ways = 2 if config.bidirectional else 1
    gru = nn.GRU(config.dim, config.hidden, config.layers, bidirectional=ways == 2).double()
    ours = [gru_of_one_way for layer in model.layers for gru_of_one_way in layer.children()]
    with torch.no_grad():
        for number, part in enumerate(ours):
            suffix = f"_l{number // ways}" + ("_reverse" if number % ways else "")
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                gru.get_parameter(name + suffix).copy_(part.get_parameter(f"{name}_l0"))
    states, final = gru(words)  # [words, ways · hidden] of the last layer, [layers · ways, hidden]
    pooled: Tensor = states.mean(0) if config.pooling == "mean" else final[-ways:].flatten()
    return pooled


def batch() -> tuple[Tensor, Tensor]:
    """Return texts of `LENGTHS` tokens in 12 places; masked places do not hold PAD and must not matter."""
    ids = torch.randint(2, 20, (len(LENGTHS), 12), generator=torch.Generator().manual_seed(1))
    return ids, torch.arange(12)[None] < torch.tensor(LENGTHS)[:, None]


@pytest.mark.parametrize("name", CONFIGS)
def test_equals_the_definition(name: str) -> None:
    config = CONFIGS[name]
    model, (ids, mask) = build(config), batch()
    exact = torch.stack(
        [naive(model, config, t[:n]) for t, n in zip(ids.tolist(), LENGTHS, strict=True)]
    ).detach()
    assert exact[[0, 3]].abs().amax(1).min() > 1e-3
    assert (model(ids, mask) - exact).abs().max() < 1e-10
    assert (model.float()(ids, mask) - exact).abs().max() < 1e-5


@pytest.mark.parametrize("name", CONFIGS)
def test_padding_and_batch_mates_change_nothing(name: str) -> None:
    model, (ids, mask) = build(CONFIGS[name]), batch()
    together = model(ids, mask)
    for row, length in enumerate(LENGTHS):
        alone = model(ids[row : row + 1, :length], torch.ones(1, length, dtype=torch.bool))
        assert (together[row] - alone[0]).abs().max() < 1e-12
    gradient = torch.autograd.grad(together[0].sum(), model.embedding.weight)[0]
    assert set(gradient.abs().sum(1).nonzero().flatten().tolist()) <= set(ids[0, : LENGTHS[0]].tolist())


@pytest.mark.parametrize("name", CONFIGS)
def test_an_empty_text_is_zero_and_an_empty_batch_has_its_shape(name: str) -> None:
    model = build(CONFIGS[name]).float()
    for rows, places in ((2, 3), (2, 0), (0, 3), (0, 0)):
        nothing = torch.zeros(rows, places, dtype=torch.long)
        vectors = model(nothing, nothing > 0)
        assert torch.equal(vectors, torch.zeros(rows, CONFIGS[name].output))


@pytest.mark.parametrize("name", GRADCHECKED)
def test_gradcheck_through_every_parameter(name: str) -> None:
    model = build(GRADCHECKED[name], tokens=7)
    ids = torch.tensor([[2, 3, 4, 2], [5, 6, 0, 0], [0, 0, 0, 0]])
    parameters = dict(model.named_parameters())

    def call(*values: Tensor) -> Tensor:
        given = dict(zip(parameters, values, strict=True))
        return torch.func.functional_call(model, given, (ids, ids > 0))  # type: ignore[no-any-return]  # a model's output

    inputs = tuple(p.detach().requires_grad_() for p in parameters.values())
    assert torch.autograd.gradcheck(call, inputs, eps=1e-6, atol=1e-5)
    gradients = torch.autograd.grad(call(*inputs).square().sum(), inputs)
    assert all(gradient.abs().max() > 0 for gradient in gradients)


def test_what_makes_no_model_is_refused() -> None:
    for_cnn: list[dict[str, Any]] = [
        {"dim": 0}, {"widths": ()}, {"widths": (3, 0)}, {"filters": 0}, {"dropout": 1.0}, {"projection": 0},
    ]  # fmt: skip
    for wrong in for_cnn:
        with pytest.raises(ValueError, match="at least"):
            CnnConfig(**wrong)
    wrong_grus: list[dict[str, Any]] = [{"dim": 0}, {"hidden": 0}, {"layers": 0}, {"projection": -1}]
    for of_gru in wrong_grus:
        with pytest.raises(ValueError, match="at least"):
            BiGruConfig(**of_gru)
    with pytest.raises(ValueError, match="'last' or 'mean'"):
        GruConfig(pooling="max")  # type: ignore[arg-type]  # from a file
