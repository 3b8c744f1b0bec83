"""A pair scorer as a folder: model.safetensors, config.json, backbone/ (configuration, tokenizer) and a model card.

The folder of the frozen-feature variant holds only the head and names the encoder, which is checked on loading.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import torch
from torch import nn

from linker.base.errors import InputError
from linker.encoders.interface import Encoder
from linker.encoders.loading import load_encoder
from linker.encoders.model_folder import (
    BACKBONE,
    CARD,
    CONFIG,
    WEIGHTS,
    card,
    check_replaceable,
    configured,
    format_of,
    read_settings,
    replacing,
    within,
    write_part,
)
from linker.encoders.weights import check_shapes, hash_state, load_state, shapes_of, to_bytes
from linker.scoring.pairs.backbone import empty_backbone
from linker.scoring.pairs.sts.cross_config import CrossConfig
from linker.scoring.pairs.sts.cross_encoder import CrossEncoder
from linker.scoring.pairs.sts.frozen import FrozenScorer
from linker.scoring.pairs.sts.mixed import MixedScorer
from linker.scoring.pairs.sts.scorer import PairScorer

KIND = "scorer of pairs"
FORMATS = {
    "linker-cross-1": "Cross-BERT-GRU",
    "linker-frozen-1": "head over frozen features",
    "linker-mixed-1": "regression over encoders, word alignment and surface",
}


def save(scorer: PairScorer, folder: Path, notes: str = "") -> None:
    """Write a model, replacing an earlier scorer; `notes` go into its card. Raises InputError for any other folder."""
    with replacing(folder, FORMATS, KIND) as new:
        settings: dict[str, Any] = {"format": "linker-frozen-1", **scorer.describe()}
        if isinstance(scorer, MixedScorer):
            settings["format"] = "linker-mixed-1"
        if isinstance(scorer, CrossEncoder):
            settings |= {"format": "linker-cross-1", "limit": scorer.backbone.limit}
            scorer.backbone.module.config.save_pretrained(new / BACKBONE)
            scorer.backbone.tokenizer.save_pretrained(new / BACKBONE)
        write_part(new / CONFIG, orjson.dumps(settings, option=orjson.OPT_INDENT_2))
        write_part(new / CARD, _card(scorer, settings["format"], folder.name, notes))
        state = scorer.module.state_dict()
        write_part(new / WEIGHTS, to_bytes(state, fingerprint(scorer.module)))


def check_free(folder: Path) -> None:
    """Raise InputError if `save` would refuse a folder because it holds anything but a scorer."""
    check_replaceable(folder, FORMATS, KIND)


def is_saved(folder: Path) -> bool:
    """Return whether a folder holds a scorer of this or another version, by its config.json."""
    return format_of(folder).startswith(("linker-cross-", "linker-frozen-", "linker-mixed-"))


def load(folder: Path) -> PairScorer:
    """Read a model written by `save`. Raises InputError if a file is missing, damaged or of another version."""
    settings = read_settings(folder, FORMATS, "linker sts train")
    path = folder / WEIGHTS
    try:
        scorer = KINDS[settings["format"]](settings, folder)
    except (KeyError, TypeError, ValueError) as e:
        raise InputError(f"{folder / CONFIG} does not describe a model of this version: {e!r}") from None
    if load_state(scorer.module, path) != fingerprint(scorer.module):
        raise InputError(f"{path} is damaged: its weights are not the ones that were saved; copy it again")
    scorer.module.eval()
    return scorer


def _cross(settings: dict[str, Any], folder: Path) -> PairScorer:
    config = configured(CrossConfig, settings["model"], folder / CONFIG)
    name, limit = str(settings["backbone"]), within("limit", settings["limit"], folder / CONFIG)
    with torch.device("meta"):  # this allocates no memory before the weights' shapes are checked
        module = CrossEncoder.new(config, empty_backbone(folder / BACKBONE, name, limit)).module
    check_shapes(folder / WEIGHTS, shapes_of(module))
    return CrossEncoder.new(config, empty_backbone(folder / BACKBONE, name, limit))


def _frozen_scorer(settings: dict[str, Any], folder: Path) -> PairScorer:
    model, name = settings["model"], str(settings["backbone"])
    dropout = float(model["dropout"])
    if not 0 <= dropout < 1:
        raise InputError(f"{folder / CONFIG}: dropout = {dropout}: must be at least 0 and below 1")
    return FrozenScorer(name, _encoder(name, model["fingerprint"]), dropout)


def _mixed_scorer(settings: dict[str, Any], folder: Path) -> PairScorer:
    model = settings["model"]
    encoders = {name: _encoder(name, value) for name, value in model["encoders"].items()}
    scorer = MixedScorer(encoders, with_products=bool(model.get("products")))
    if list(scorer.columns) != list(model["columns"]):
        raise InputError(f"{folder / CONFIG}: the evidence is not what this version computes: train it again")
    return scorer


def _encoder(name: str, fingerprint: str) -> Encoder:
    """Load the encoder of a head. Raises InputError if the head was trained on another encoder."""
    encoder = load_encoder(name, fetch=False)
    if encoder.fingerprint != fingerprint:
        raise InputError(
            f"the encoder {name!r} is not the one that the scorer's head was trained on: train it again"
        )
    return encoder


KINDS: dict[str, Callable[[dict[str, Any], Path], PairScorer]] = {
    "linker-cross-1": _cross,
    "linker-frozen-1": _frozen_scorer,
    "linker-mixed-1": _mixed_scorer,
}


def fingerprint(module: nn.Module) -> str:
    """Return a hash of a module's weights."""
    return f"cross-{hash_state(module.state_dict())}"


def _card(scorer: PairScorer, kind: str, name: str, notes: str) -> bytes:
    parameters = sum(p.numel() for p in scorer.module.parameters())
    described = scorer.describe()
    about = f"""A {FORMATS[kind]} on the backbone `{described["backbone"]}`: {parameters:,} parameters.
It takes two texts and gives a distribution over the grades 0 (unrelated) to 5 (the same). It is untested on other kinds
of pairs, languages and periods than those in training, and repeats their biases and those of its backbone."""
    code = f"""```sh
linker sts predict {name} pairs.jsonl
linker search DIR --text "…" --rerank {name}
```"""
    return card(name, about, code, described["model"], notes)
