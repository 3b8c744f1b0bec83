"""A news similarity model as a folder: model.safetensors, config.json, encoder/ of a tuned one, and a card."""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_safetensors

from linker.encoders import Encoder
from linker.errors import InputError
from linker.files import read_settings, write_atomically
from linker.pairs.fusion import Fusion, FusionConfig
from linker.pairs.overlap import Overlap
from linker.pairs.recognise import Recogniser
from linker.pairs.siamese import FrozenSiamese, Siamese, SiameseConfig, TunedSiamese
from linker.pairs.similarity import NewsSimilarity, remembering
from linker.pairs.similarity_config import SimilarityConfig

FORMAT = "linker-similarity-1"
WEIGHTS, CONFIG, ENCODER, CARD = "model.safetensors", "config.json", "encoder", "README.md"
Tensors = dict[str, Any]  # of numpy


def save(model: NewsSimilarity, folder: Path, notes: str = "") -> None:
    """Write a model; a new folder appears whole. Raises InputError where there is something already."""
    if folder.exists():
        raise InputError(f"{folder} exists: remove it or name another folder for the model")
    target = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    settings = {"format": FORMAT, "kinds": model.kinds, "config": dataclasses.asdict(model.config)}
    try:
        target.mkdir(parents=True)
        if isinstance(model.siamese, TunedSiamese):
            model.siamese.backbone.save(target / ENCODER)
        elif isinstance(model.siamese, FrozenSiamese):
            settings["encoder"] = model.siamese.encoder.fingerprint
        write_atomically(target / WEIGHTS, to_safetensors(_tensors(model)))
        write_atomically(target / CONFIG, orjson.dumps(settings, option=orjson.OPT_INDENT_2))
        write_atomically(target / CARD, _card(model, folder.name, notes).encode())
        target.rename(folder)
    except OSError as e:
        raise InputError(f"cannot write the model {folder}: {e.strerror}") from e
    finally:
        shutil.rmtree(target, ignore_errors=True)


def load(
    folder: Path, *, recogniser: Recogniser | None = None, encoder: Encoder | None = None
) -> NewsSimilarity:
    """Read a model. `recogniser` and `encoder` stand for the ones it names.

    Raises InputError naming the file that is missing or damaged, or a backbone that is not the one of the training.
    """
    settings = read_settings(folder / CONFIG, [FORMAT], "linker similarity train")
    try:
        config, kinds = _config(settings["config"]), tuple(settings["kinds"])
        fingerprint = settings.get("encoder")
    except (LookupError, TypeError, ValueError) as e:
        raise InputError(f"{folder / CONFIG} does not describe a model of this version: {e!r}") from None
    tensors = _read(folder / WEIGHTS)
    try:
        fusion = Fusion.of_tensors(_within(tensors, "fusion."), config.fusion.output)
        siamese = _siamese(folder, config, tensors, fingerprint, encoder)
        known = _within(tensors, "overlap.")
        overlap = Overlap(known["frequencies"].astype(np.int64), int(known["articles"][0])) if known else None
    except KeyError as e:
        raise InputError(f"{folder / WEIGHTS} is damaged: it lacks {e}") from None
    return NewsSimilarity(
        config, siamese, overlap, kinds, fusion, recogniser or Recogniser(dict(config.pipelines))
    )


def _tensors(model: NewsSimilarity) -> Tensors:
    tensors: Tensors = {f"fusion.{name}": value for name, value in model.fusion.tensors().items()}
    if model.overlap is not None:
        tensors["overlap.frequencies"] = model.overlap.frequencies.astype(np.int32)
        tensors["overlap.articles"] = np.array([model.overlap.articles])
    if isinstance(model.siamese, FrozenSiamese):
        tensors["siamese.shift"] = model.siamese.shift
        tensors["siamese.deviation"] = np.ascontiguousarray(model.siamese.deviation)
    return tensors


def _siamese(
    folder: Path, config: SimilarityConfig, tensors: Tensors, fingerprint: str | None, given: Encoder | None
) -> Siamese:
    if not config.siamese.frozen:
        from linker.pairs.backbone import load_backbone

        return TunedSiamese(load_backbone(folder / ENCODER), config.siamese.max_length)
    encoder = given or remembering(config.siamese.backbone)
    if encoder.fingerprint != fingerprint:
        raise InputError(
            f"{folder} was trained over {config.siamese.backbone!r}, but that encoder has changed since: "
            "bring the old one back, or train again"
        )
    return FrozenSiamese(encoder, tensors["siamese.shift"], tensors["siamese.deviation"])


def _config(values: dict[str, Any]) -> SimilarityConfig:
    rest = {
        **values,
        "siamese": SiameseConfig(**values["siamese"]),
        "fusion": FusionConfig(**values["fusion"]),
        "features": tuple(values["features"]),
        "pipelines": tuple((language, name) for language, name in values["pipelines"]),
    }
    return SimilarityConfig(**rest)


def _read(path: Path) -> Tensors:
    try:
        with safe_open(path, framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a mapping
    except (OSError, SafetensorError) as e:
        raise InputError(f"{path} is missing or damaged: {e}") from None


def _within(tensors: Tensors, prefix: str) -> Tensors:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _card(model: NewsSimilarity, name: str, notes: str) -> str:
    config = model.config
    how = "frozen, a linear map of its vectors trained" if config.siamese.frozen else "trained, see encoder/"
    pipelines = ", ".join(f"{language or 'all'}: {ner}" for language, ner in config.pipelines)
    return f"""# {name}

Scores pairs of news articles from 1 (the same story) to 4 (unrelated): a Siamese encoder over
`{config.siamese.backbone}` ({how}) and a fusion of {len(model.names)} features: {", ".join(model.names)}.
Entities by spaCy ({pipelines}). Trained on pairs in {", ".join(filter(None, model.kinds)) or "languages not recorded"};
it knows no other kind of text, language or time, and repeats the biases of its training data.

```sh
linker similarity predict {name} pairs.jsonl --out scores.tsv
```
{notes and f"{chr(10)}{notes.strip()}{chr(10)}"}"""
