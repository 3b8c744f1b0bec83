"""A news similarity model as a folder: model.safetensors, config.json, encoder/ if it was tuned, and a model card."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from safetensors.numpy import save as to_safetensors

from linker.base.errors import InputError
from linker.encoders.interface import Encoder
from linker.encoders.model_folder import (
    CARD,
    CONFIG,
    ENCODER,
    WEIGHTS,
    card,
    configured,
    read_settings,
    replacing,
    write_part,
)
from linker.encoders.weights import opened, with_prefix
from linker.papers.news.fusion import FusionNetwork
from linker.papers.news.overlap import Overlap
from linker.papers.news.recognise import Recogniser
from linker.papers.news.siamese import FrozenSiamese, Siamese, TunedSiamese
from linker.papers.news.similarity import NewsSimilarity, remembering, translator_of
from linker.papers.news.similarity_config import SimilarityConfig

FORMAT = "linker-similarity-1"
Tensors = dict[str, Any]  # arrays of numpy, by name


def save(model: NewsSimilarity, folder: Path, notes: str = "") -> None:
    """Write a model to a new folder, which appears complete or not at all. Raises InputError if it exists."""
    if folder.exists():
        raise InputError(f"{folder} exists: remove it or name another folder for the model")
    settings = {"format": FORMAT, "kinds": model.kinds, "config": dataclasses.asdict(model.config)}
    with replacing(folder, [], "model that may be replaced") as new:
        if isinstance(model.siamese, TunedSiamese):
            model.siamese.backbone.save(new / ENCODER)
        elif isinstance(model.siamese, FrozenSiamese):
            settings["encoder"] = model.siamese.encoder.fingerprint
        write_part(new / WEIGHTS, to_safetensors(_tensors(model)))
        write_part(new / CONFIG, orjson.dumps(settings, option=orjson.OPT_INDENT_2))
        write_part(new / CARD, _card(model, folder.name, notes))


def load(
    folder: Path, *, recogniser: Recogniser | None = None, encoder: Encoder | None = None
) -> NewsSimilarity:
    """Read a model that `save` wrote. `recogniser` and `encoder` override those of the model. Raises InputError."""
    settings = read_settings(folder, [FORMAT], "linker similarity train")
    config = configured(SimilarityConfig, settings.get("config"), folder / CONFIG)
    kinds, fingerprint = _texts(settings.get("kinds"), folder / CONFIG), settings.get("encoder")
    tensors = _read(folder / WEIGHTS)
    try:
        fusion = FusionNetwork.of_tensors(with_prefix(tensors, "fusion."), config.fusion.output)
        siamese = _siamese(folder, config, tensors, fingerprint, encoder)
        known = with_prefix(tensors, "overlap.")
        overlap = Overlap(known["frequencies"].astype(np.int64), int(known["articles"][0])) if known else None
    except KeyError as e:
        raise InputError(f"{folder / WEIGHTS} is damaged: it lacks {e}") from None
    return NewsSimilarity(
        config, siamese, overlap, kinds, fusion, recogniser or Recogniser(dict(config.pipelines)),
        translator_of(config),
    )  # fmt: skip


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
        from linker.scoring.pairs.backbone import load_backbone

        return TunedSiamese(load_backbone(folder / ENCODER, strict=True), config.siamese.max_length)
    encoder = given or remembering(config.siamese.backbone, fetch=False)
    if encoder.fingerprint != fingerprint:
        raise InputError(
            f"{folder} was trained over {config.siamese.backbone!r}, but that encoder has changed since: "
            "restore the old one, or train again"
        )
    return FrozenSiamese(encoder, tensors["siamese.shift"], tensors["siamese.deviation"])


def _texts(value: Any, path: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise InputError(f"{path} does not describe a model of this version: kinds is not a list of strings")
    return tuple(value)


def _read(path: Path) -> Tensors:
    with opened(path) as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a mapping
    for name, values in tensors.items():
        if not np.isfinite(values).all():
            raise InputError(f"{path} is damaged: {name} holds NaN or infinity; copy the model again")
    return tensors


def _card(model: NewsSimilarity, name: str, notes: str) -> bytes:
    config = model.config
    how = "frozen, with a learned linear map" if config.siamese.frozen else "trained, see encoder/"
    pipelines = ", ".join(f"{language or 'all'}: {ner}" for language, ner in config.pipelines)
    known = "entities" in config.features
    entities = f"Entities by spaCy ({pipelines})." if known else "It looks for no entities."
    about = f"""Scores pairs of news articles by topic, from 1 (the same story) to 4 (unrelated): a Siamese encoder over
`{config.siamese.backbone}` ({how}) and a fusion of {len(model.names)} features: {", ".join(model.names)}.
{entities} Trained on pairs in {", ".join(filter(None, model.kinds)) or "languages not recorded"};
it is untested on other kinds of text, languages and periods, and repeats the biases of its training data."""
    code = f"""```sh
linker similarity predict {name} pairs.jsonl --out scores.tsv
```"""
    return card(name, about, code, {}, notes)
