"""Explanations match the model: replayed weights, shares that add up, tokens really left out."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.stats import spearmanr
from torch import Tensor

from linker.encoders import folder as folders
from linker.encoders.attention import hooked
from linker.encoders.configs import BagConfig, StarConfig
from linker.encoders.star import StarTransformer
from linker.encoders.text import TextEncoder, padded
from linker.encoders.tokens import Vocabulary, WordTokenizer
from linker.scoring.pairs.explaining import Attention, explain
from tests.helpers import HashEncoder, linker

STAR = StarConfig(dim=8, heads=3, head_dim=4, layers=2, alpha=1.7, window=1, residual=True, max_weight=0.3)
A, B = "w1 w2 w3 W4, unheard w5", "w3 w6 w7 w1"


def encoder(config: StarConfig | BagConfig) -> TextEncoder:
    torch.manual_seed(1)
    model = TextEncoder.new(config, WordTokenizer(Vocabulary.of(f"w{i}" for i in range(10))), max_length=20)
    with torch.no_grad():
        for parameter in model.module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.4)
    model.module.eval()
    return model


def original(attention: Attention) -> Tensor:
    """Return weights in the model's own shape."""
    weights = torch.from_numpy(attention.weights)
    return weights if attention.name.endswith("relay") else weights.transpose(0, 1)[:, None]


@pytest.mark.parametrize("max_weight", [0.3, None])
def test_the_weights_shown_bring_the_cosine_back(max_weight: float | None) -> None:
    model = encoder(dataclasses.replace(STAR, max_weight=max_weight, layer_norm=max_weight is None))
    assert isinstance(model.module, StarTransformer)
    found = explain(model, A, B)
    assert found.cosine == pytest.approx(float(np.dot(*model.encode([A, B]))), abs=1e-5)
    with torch.no_grad():
        for name, parameter in model.module.named_parameters():
            if any(part in name for part in ("query", "key", "raw_alpha")):
                parameter.zero_()
    vectors = []
    for text, part in zip((A, B), found.texts, strict=True):
        held = {attention.name: original(attention) for attention in part.attentions}
        with hooked(model.module, lambda name, weights, inside, held=held: held[name]):  # type: ignore[misc]  # bound early
            vectors.append(model.encode([text])[0])
    assert float(np.dot(*vectors)) == pytest.approx(found.cosine, abs=1e-5)
    assert abs(float(np.dot(*model.encode([A, B]))) - found.cosine) > 1e-3


def test_figures_of_a_head() -> None:
    model = encoder(STAR)
    assert isinstance(model.module, StarTransformer)
    part = explain(model, A, B).texts[0]
    assert part.tokens == ("w1", "w2", "w3", "w4", "unheard", "w5")
    ring, relay = part.attentions[2:]
    assert (ring.name, ring.places) == ("layers.1.ring", ("-1", "0", "+1", "relay", "word"))
    assert (relay.name, relay.places) == ("layers.1.relay", ("relay", *part.tokens))
    assert (ring.possible, relay.possible) == (6 * 5 - 2, 7)
    assert ring.weights.shape == (6, 5, 3)
    assert relay.weights.shape == (1, 7, 3)
    assert ring.inside.tolist()[0] == [False, True, True, True, True]
    assert relay.alphas == tuple(model.module.alphas()["layers.1.relay"])
    shown = relay.to_dict()
    for head, figures in enumerate(shown["heads"]):
        assert figures["zeros"] == sum(w == 0 for w in figures["weights"][0])
        assert figures["moved"] == pytest.approx(relay.alphas[head] - 1.7, abs=1e-5)
    assert sum(figures["zeros"] for a in part.attentions for figures in a.to_dict()["heads"]) > 0
    assert ring.to_dict()["heads"][0]["weights"][0][0] is None
    assert part.attention == pytest.approx(
        np.mean([a.weights[0, 1:].mean(1) for a in part.attentions[1::2]], axis=0)
    )
    assert part.unevenness == max(abs(a.weights - 1 / 7).max() for a in part.attentions[1::2])


def test_shares_are_the_parts_of_the_embedding() -> None:
    """Without a max pool the model is linear in the words for fixed weights: run it on each word alone."""
    model = encoder(STAR)
    module = model.module
    assert isinstance(module, StarTransformer)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.endswith("bias") or name == "max_weight":
                parameter.zero_()
    part = explain(model, A, B).texts[0]
    held = {attention.name: original(attention) for attention in part.attentions}
    ids, mask = padded(model.tokenizer.encode_batch([A], 20))
    with torch.no_grad():
        whole = module(ids, mask)[0]
        shares = []
        for i in range(len(part.tokens)):
            keep = torch.zeros(1, len(part.tokens), 1)
            keep[0, i] = 1

            def only(_module: object, _inputs: object, output: Tensor, keep: Tensor = keep) -> Tensor:
                return output * keep

            hook = module.embedding.register_forward_hook(only)
            with hooked(module, lambda name, weights, inside: held[name]):
                shares.append(float(module(ids, mask)[0] @ whole / whole.square().sum()))
            hook.remove()
    assert part.shares == pytest.approx(shares, abs=1e-5)
    assert sum(shares) == pytest.approx(1, abs=1e-5)


def test_ablation_leaves_out_one_token_at_a_time_and_the_rank_correlation_is_spearmans() -> None:
    model = encoder(STAR)
    found = explain(model, A, B)
    words = A.split()
    texts = [" ".join(words[:i] + words[i + 1 :]) for i in range(len(words))]
    expected = model.encode(texts) @ model.encode([B])[0] - found.cosine
    assert found.texts[0].changes == pytest.approx(expected, abs=1e-5)
    part = explain(encoder(STAR), A, B).texts[0]
    assert part.attention is not None
    expected = spearmanr(part.attention, np.abs(part.changes)).statistic
    assert part.correlation(part.attention) == pytest.approx(expected)
    assert part.correlation(np.ones(6)) is None
    assert part.correlation(None) is None
    two = explain(encoder(STAR), "w1 w2", B).texts[0]
    assert two.correlation(two.attention) is None


def test_explaining_leaves_the_model_as_it_was() -> None:
    model = encoder(STAR)
    module = model.module
    assert isinstance(module, StarTransformer)
    before = model.fingerprint
    module.train()
    explain(model, A, B)
    assert module.training
    assert model.fingerprint == before
    assert all(p.grad is None for p in module.parameters())
    assert all(attention.hook is None for attention in module.attentions().values())
    assert not module.embedding._forward_hooks


@pytest.mark.parametrize("empty", ["", "?!"])
def test_a_text_without_tokens(empty: str) -> None:
    model = encoder(STAR)
    found = explain(model, empty, B)
    assert found.cosine == pytest.approx(float(np.dot(*model.encode(["", B]))), abs=1e-5)
    assert found.texts[0].tokens == ()
    assert len(found.texts[1].changes) == 4
    assert json.loads(json.dumps(found.to_dict()))["a"]["attentions"] == []


class Recorder(HashEncoder):
    """Records the texts it is asked to encode."""

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[np.float32]:
        self.asked = [*getattr(self, "asked", []), *texts]
        return super().encode(texts)


def test_other_encoders_are_explained_by_words_left_out() -> None:
    model = Recorder()
    found = explain(model, "One two, three", "two, four")
    assert model.asked == [
        "One two, three", " two, three", "One  three", "One two, ", "two, four", " four", "two, ",
    ]  # fmt: skip
    assert found.texts[0].tokens == ("One", "two,", "three")
    assert found.texts[0].changes[1] == pytest.approx(-found.cosine, abs=0.2) != 0
    assert found.texts[0].shares is found.texts[0].attention is None
    bag = explain(encoder(BagConfig(dim=6)), A, B)
    assert (bag.kind, bag.texts[0].attentions, bag.texts[0].shares) == ("bag", (), None)


def test_the_command(tmp_path: Path) -> None:
    folders.save(encoder(STAR), tmp_path / "model")
    command = ("explain", tmp_path / "model", "--text", A, "--text", B)
    data = json.loads(linker(*command, "--json").stdout)
    assert data["kind"] == "star"
    assert len(data["a"]["attentions"]) == 4
    done = linker(*command, "--head", "2", "-n", "3")
    assert f"cosine {data['cosine']:.4f}" in done.stdout
    assert "3 more" in done.stdout
    assert "layers.0.ring, head 2" in done.stdout
    zeros = sum(h["zeros"] for h in data["a"]["attentions"][3]["heads"])
    everything = linker(*command, "-n", "0").stdout.split("\nB: ")[0]
    assert everything.split("layers.0.ring")[0].count(" ·") - 1 == zeros  # one in the title
    assert "Rank correlation with |Δcosine| over 6 tokens" in everything
    assert "shows a token's effect" in done.stderr


def test_the_command_on_another_kind_and_on_wrong_usage(tmp_path: Path) -> None:
    folders.save(encoder(BagConfig(dim=6)), tmp_path / "bag")
    done = linker("explain", tmp_path / "bag", "--text", A, "--text", "")
    assert "B: 0 tokens" in done.stdout
    assert "bag encoder has no sparse attention" in done.stderr
    assert "give --text twice" in linker("explain", tmp_path / "bag", "--text", A, check=2).stderr
    folders.save(encoder(STAR), tmp_path / "star")
    wrong = linker("explain", tmp_path / "star", "--text", A, "--text", B, "--head", "9", check=2)
    assert "3 heads" in wrong.stderr
