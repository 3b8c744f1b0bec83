"""A model's config.json, read and written without PyTorch."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from linker.base.errors import InputError
from linker.encoders.configs import KINDS, LATER_OPTIONS, ModelConfig, kind_of
from linker.encoders.model_folder import CONFIG, MAX_TOKENS, TOKENIZER, configured, read_settings, within
from linker.encoders.tokens import Tokenizer
from linker.encoders.tokens.pieces import load_tokenizer

FORMAT = "linker-encoder-1"


def describe(config: ModelConfig, max_length: int) -> dict[str, Any]:
    """Return a model's part of config.json."""
    model = dataclasses.asdict(config)
    for name, default in LATER_OPTIONS.items():  # so that older models keep their fingerprint
        if model.get(name) == default:
            del model[name]
    return {"kind": kind_of(config), "max_length": max_length, "model": model}


def hashed_first(config: ModelConfig, max_length: int, tokenizer: Tokenizer) -> bytes:
    """Return the bytes that a fingerprint hashes before the weights: the configuration and the vocabulary."""
    return json.dumps(describe(config, max_length), sort_keys=True).encode() + tokenizer.to_bytes()


def read_described(folder: Path) -> tuple[ModelConfig, int]:
    """Return a folder's hyperparameters and its maximum number of tokens. Raises InputError if config.json is wrong."""
    settings, path = read_settings(folder, [FORMAT], "linker train"), folder / CONFIG
    kind = settings.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"{path} names the model kind {str(kind)[:80]!r}, not one of {', '.join(KINDS)}")
    config: ModelConfig = configured(KINDS[kind], settings.get("model"), path)
    return config, within("max_length", settings.get("max_length"), path)


def read_tokenizer(folder: Path) -> Tokenizer:
    """Return the tokenizer of the model in a folder. Raises InputError if it is missing, damaged or too large."""
    path = folder / TOKENIZER
    if not path.is_file():
        raise InputError(f"{path} is missing: the model cannot be read without it")
    tokenizer = load_tokenizer(path)
    if tokenizer.size > MAX_TOKENS:
        raise InputError(f"{path} has {tokenizer.size:,} tokens, more than the {MAX_TOKENS:,} allowed")
    return tokenizer
