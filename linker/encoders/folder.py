"""A text encoder as a folder: model.safetensors, config.json, tokenizer.json and a model card. Nothing unpickles."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import orjson
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_safetensors
from torch import nn

from linker.encoders.text import MODELS, TextEncoder
from linker.errors import InputError
from linker.files import read_settings, write_atomically
from linker.tokens import load_tokenizer

FORMAT = "linker-encoder-1"
WEIGHTS, CONFIG, TOKENIZER, CARD = "model.safetensors", "config.json", "tokenizer.json", "README.md"


def save(encoder: TextEncoder, folder: Path, notes: str = "") -> None:
    """Write a model; `notes` go into its card. A new folder appears whole; in an old one the weights come last.

    The weights' header holds the fingerprint of all parts, so that a half-replaced or altered folder is found out.
    """
    fresh = not folder.exists()
    target = folder.with_name(f".{folder.name}.{os.getpid()}.tmp") if fresh else folder
    try:
        target.mkdir(parents=True, exist_ok=True)
        encoder.tokenizer.save(target / TOKENIZER)
        settings = {"format": FORMAT, **encoder.describe()}
        write_atomically(target / CONFIG, orjson.dumps(settings, option=orjson.OPT_INDENT_2))
        write_atomically(target / CARD, _card(encoder, folder.name, notes).encode())
        save_weights(encoder, target)
        if fresh:
            target.rename(folder)
    except OSError as e:
        raise InputError(f"cannot write the model {folder}: {e.strerror}") from e
    finally:
        if fresh:
            shutil.rmtree(target, ignore_errors=True)


def save_weights(encoder: TextEncoder, folder: Path) -> None:
    """Replace only the weights of a saved model, in one step."""
    state = {name: value.detach().cpu().contiguous() for name, value in encoder.module.state_dict().items()}
    write_atomically(folder / WEIGHTS, to_safetensors(state, {"fingerprint": encoder.fingerprint}))


def is_saved(folder: Path) -> bool:
    """Say whether a folder holds a model of this format, by its config.json."""
    try:
        settings = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(settings, dict) and str(settings.get("format", "")).startswith("linker-encoder-")


def load(folder: Path) -> TextEncoder:
    """Read a model written by `save`. Raises InputError naming the file that is missing, damaged or too new."""
    settings = read_settings(folder / CONFIG, [FORMAT], "linker train")
    try:
        config_class = MODELS[settings["kind"]][0]
        config = config_class(**settings["model"])
        max_length = int(settings["max_length"])
    except (KeyError, TypeError, ValueError) as e:
        raise InputError(f"{folder / CONFIG} does not describe a model of this version: {e!r}") from None
    if not (folder / TOKENIZER).is_file():
        raise InputError(f"{folder / TOKENIZER} is missing: the model cannot be read without it")
    encoder = TextEncoder.new(config, load_tokenizer(folder / TOKENIZER), max_length)
    load_weights(encoder, folder)
    encoder.module.eval()
    return encoder


def load_weights(encoder: TextEncoder, folder: Path) -> None:
    """Read a folder's weights into a model of the same configuration. Raises InputError."""
    fingerprint = load_state(encoder.module, folder / WEIGHTS)
    if fingerprint != encoder.fingerprint:
        raise InputError(
            f"{folder} is damaged: its weights, {CONFIG} and {TOKENIZER} do not belong together; "
            "copy it anew or train again"
        )


def load_state(module: nn.Module, path: Path) -> str | None:
    """Read weights into a module and return the fingerprint in their header. Raises InputError."""
    try:
        with safe_open(path, framework="pt") as file:
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a mapping
            fingerprint: str | None = (file.metadata() or {}).get("fingerprint")
        module.load_state_dict(state)
    except (OSError, SafetensorError, RuntimeError) as e:
        raise InputError(f"{path} is missing, damaged or belongs to another model: {e}") from None
    return fingerprint


def _card(encoder: TextEncoder, name: str, notes: str) -> str:
    parameters = sum(p.numel() for p in encoder.module.parameters())
    rows = "\n".join(f"| {key} | {value} |" for key, value in encoder.describe()["model"].items())
    return f"""# {name}

A text encoder of kind `{encoder.kind}`: {parameters:,} parameters, vectors of dimension {encoder.dim}, a vocabulary
of {encoder.tokenizer.size:,} tokens, texts cut after {encoder.max_length} tokens. Cosines of its vectors rank links
between texts. It knows no other language, kind of text or time than its training data, and repeats their biases.

```python
from linker.encoders import load_encoder

vectors = load_encoder("{name}").encode(["a text", "another"])  # float32 [2, {encoder.dim}], L2-normalised
```

| setting | value |
|---|---|
{rows}

Fingerprint: `{encoder.fingerprint}`
{notes and f"{chr(10)}{notes.strip()}{chr(10)}"}"""
