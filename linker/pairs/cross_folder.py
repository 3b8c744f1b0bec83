"""A Cross-BERT-GRU as a folder: model.safetensors, config.json, backbone/ (configuration, tokenizer) and a card."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import orjson
import torch
import xxhash
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_safetensors
from torch import nn

from linker.errors import InputError
from linker.files import write_atomically
from linker.pairs.backbone import empty_backbone
from linker.pairs.cross_config import CrossConfig
from linker.pairs.cross_encoder import CrossEncoder

FORMAT = "linker-cross-1"
WEIGHTS, CONFIG, BACKBONE, CARD = "model.safetensors", "config.json", "backbone", "README.md"


def save(encoder: CrossEncoder, folder: Path, notes: str = "") -> None:
    """Write a model; `notes` go into its card. The folder appears whole, an earlier one of this format is replaced.

    Raises InputError when the folder holds something else.
    """
    if folder.exists() and not is_saved(folder) and any(folder.iterdir()):
        raise InputError(f"{folder} exists and holds no Cross-BERT-GRU: name another --out")
    target = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        (target / BACKBONE).mkdir(parents=True)
        backbone = encoder.backbone
        backbone.module.config.save_pretrained(target / BACKBONE)
        backbone.tokenizer.save_pretrained(target / BACKBONE)
        settings = {"format": FORMAT, "limit": backbone.limit, **encoder.describe()}
        write_atomically(target / CONFIG, orjson.dumps(settings, option=orjson.OPT_INDENT_2))
        write_atomically(target / CARD, _card(encoder, folder.name, notes).encode())
        state = {
            name: value.detach().cpu().contiguous() for name, value in encoder.module.state_dict().items()
        }
        write_atomically(
            target / WEIGHTS, to_safetensors(state, {"fingerprint": fingerprint(encoder.module)})
        )
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
    return isinstance(settings, dict) and str(settings.get("format", "")).startswith("linker-cross-")


def load(folder: Path) -> CrossEncoder:
    """Read a model written by `save`. Raises InputError naming what is missing, damaged or too new."""
    settings = _read_config(folder / CONFIG)
    try:
        config = CrossConfig(**settings["model"])
        name, limit = str(settings["backbone"]), int(settings["limit"])
    except (KeyError, TypeError, ValueError) as e:
        raise InputError(f"{folder / CONFIG} does not describe a model of this version: {e!r}") from None
    encoder = CrossEncoder.new(config, empty_backbone(folder / BACKBONE, name, limit))
    path = folder / WEIGHTS
    try:
        with safe_open(path, framework="pt") as file:
            state = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  # not a mapping
            found = (file.metadata() or {}).get("fingerprint")
        encoder.module.load_state_dict(state)
    except (OSError, SafetensorError, RuntimeError) as e:
        raise InputError(f"{path} is missing, damaged or belongs to another model: {e}") from None
    if found != fingerprint(encoder.module):
        raise InputError(f"{path} is damaged: its weights are not those that were saved; copy it anew")
    encoder.module.eval()
    return encoder


def fingerprint(module: nn.Module) -> str:
    """Return a hash of a module's weights."""
    digest = xxhash.xxh3_128()
    for name, value in sorted(module.state_dict().items()):
        digest.update(f"{name} {value.dtype} {list(value.shape)}".encode())
        digest.update(
            value.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes() if value.dim() else b""
        )
    return f"cross-{digest.hexdigest()}"


def _read_config(path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise InputError(
            f"cannot read {path}: {e.strerror}; name a folder that `linker sts train` wrote"
        ) from e
    except ValueError as e:
        raise InputError(f"{path} is damaged: {e}") from None
    found = settings.get("format") if isinstance(settings, dict) else None
    if found != FORMAT:
        raise InputError(f"{path} has the format {found!r}; `linker sts` of this version reads {FORMAT!r}")
    return dict(settings)


def _card(encoder: CrossEncoder, name: str, notes: str) -> str:
    parameters = sum(p.numel() for p in encoder.module.parameters())
    rows = "\n".join(f"| {key} | {value} |" for key, value in encoder.describe()["model"].items())
    return f"""# {name}

A Cross-BERT-GRU on the backbone `{encoder.backbone.name}`: {parameters:,} parameters. It reads two texts together and
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
