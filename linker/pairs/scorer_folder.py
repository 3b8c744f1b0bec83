"""A pair scorer as a folder: model.safetensors, config.json, backbone/ (configuration, tokenizer) and a card.

Of the frozen-feature variant the folder holds the head alone; its encoder is named, and checked when it is loaded.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import orjson
import torch
import xxhash
from safetensors.torch import save as to_safetensors
from torch import nn

from linker.encoders import load_encoder
from linker.encoders.folder import load_state
from linker.errors import InputError
from linker.files import read_settings, write_atomically
from linker.pairs.backbone import empty_backbone
from linker.pairs.cross_config import CrossConfig
from linker.pairs.cross_encoder import CrossEncoder
from linker.pairs.frozen import FrozenScorer
from linker.pairs.scorer import PairScorer

FORMATS = {"linker-cross-1": "Cross-BERT-GRU", "linker-frozen-1": "head over frozen features"}
WEIGHTS, CONFIG, BACKBONE, CARD = "model.safetensors", "config.json", "backbone", "README.md"


def save(scorer: PairScorer, folder: Path, notes: str = "") -> None:
    """Write a model; `notes` go into its card. The folder appears whole, an earlier scorer in its place is replaced.

    Raises InputError when the folder holds something else.
    """
    if folder.exists() and not is_saved(folder) and any(folder.iterdir()):
        raise InputError(f"{folder} exists and holds no scorer of pairs: name another --out")
    target = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        target.mkdir(parents=True)
        settings: dict[str, Any] = {"format": "linker-frozen-1", **scorer.describe()}
        if isinstance(scorer, CrossEncoder):
            settings |= {"format": "linker-cross-1", "limit": scorer.backbone.limit}
            scorer.backbone.module.config.save_pretrained(target / BACKBONE)
            scorer.backbone.tokenizer.save_pretrained(target / BACKBONE)
        write_atomically(target / CONFIG, orjson.dumps(settings, option=orjson.OPT_INDENT_2))
        write_atomically(target / CARD, _card(scorer, settings["format"], folder.name, notes).encode())
        state = {
            name: value.detach().cpu().contiguous() for name, value in scorer.module.state_dict().items()
        }
        write_atomically(target / WEIGHTS, to_safetensors(state, {"fingerprint": fingerprint(scorer.module)}))
        shutil.rmtree(folder, ignore_errors=True)
        target.rename(folder)
    except OSError as e:
        raise InputError(f"cannot write the model {folder}: {e.strerror}") from e
    finally:
        shutil.rmtree(target, ignore_errors=True)


def is_saved(folder: Path) -> bool:
    """Say whether a folder holds a model of this format, by its config.json."""
    try:
        settings = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(settings, dict) and str(settings.get("format", "")).startswith(
        ("linker-cross-", "linker-frozen-")
    )


def load(folder: Path) -> PairScorer:
    """Read a model written by `save`. Raises InputError naming what is missing, damaged or too new."""
    settings = read_settings(folder / CONFIG, FORMATS, "linker sts train")
    try:
        scorer = _frozen(settings) if "frozen" in settings["format"] else _cross(settings, folder)
    except (KeyError, TypeError, ValueError) as e:
        raise InputError(f"{folder / CONFIG} does not describe a model of this version: {e!r}") from None
    path = folder / WEIGHTS
    found = load_state(scorer.module, path)
    if found != fingerprint(scorer.module):
        raise InputError(f"{path} is damaged: its weights are not those that were saved; copy it anew")
    scorer.module.eval()
    return scorer


def _cross(settings: dict[str, Any], folder: Path) -> PairScorer:
    backbone = empty_backbone(folder / BACKBONE, str(settings["backbone"]), int(settings["limit"]))
    return CrossEncoder.new(CrossConfig(**settings["model"]), backbone)


def _frozen(settings: dict[str, Any]) -> PairScorer:
    model, name = settings["model"], str(settings["backbone"])
    encoder = load_encoder(name)
    if encoder.fingerprint != model["fingerprint"]:
        raise InputError(
            f"the encoder {name!r} is not the one that the scorer's head was trained on: train it anew"
        )
    return FrozenScorer(name, encoder, float(model["dropout"]))


def fingerprint(module: nn.Module) -> str:
    """Return a hash of a module's weights."""
    digest = xxhash.xxh3_128()
    for name, value in sorted(module.state_dict().items()):
        digest.update(f"{name} {value.dtype} {list(value.shape)}".encode())
        digest.update(
            value.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes() if value.dim() else b""
        )
    return f"cross-{digest.hexdigest()}"


def _card(scorer: PairScorer, kind: str, name: str, notes: str) -> str:
    parameters = sum(p.numel() for p in scorer.module.parameters())
    about = scorer.describe()
    rows = "\n".join(f"| {key} | {value} |" for key, value in about["model"].items())
    return f"""# {name}

A {FORMATS[kind]} on the backbone `{about["backbone"]}`: {parameters:,} parameters. It takes two texts and
gives a distribution over the grades 0 (unrelated) to 5 (the same). It knows no other kind of pair, language or time
than its training pairs, and repeats their biases and those of its backbone.

```sh
linker sts predict {name} pairs.jsonl
linker search DIR --text "…" --rerank {name}
```

| setting | value |
|---|---|
{rows}
{notes and f"{chr(10)}{notes.strip()}{chr(10)}"}"""
