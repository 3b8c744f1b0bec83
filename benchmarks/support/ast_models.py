"""The models of benchmarks/ast_tables.py, their settings, and their differences from the built-in configurations."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.support.ast_data import DEV_DOCUMENTS
from linker.base.config import load
from linker.encoders.configs import LATER_OPTIONS, PRESETS, BagConfig, BiGruConfig, CnnConfig, GruConfig
from linker.training import ready
from linker.training.config import DataConfig, EncoderConfig, TrainConfig, TrainingConfig
from linker.training.run import mean_settings

LENGTH = 2048  # tokens per document that every encoder reads
FEW = 5000  # links
BASE = TrainingConfig(
    temperature=0.1, batch_size=256, epochs=2, lr=1e-3, embedding_lr=0.5, max_length=128, crop=True, word_dropout=0.2,
    mean_epochs=4, patience=2, checkpoint_steps=10_000, device="cpu",
)  # fmt: skip
# These models start from random weights, while the star starts from the mean that it refines.
LONGER = dataclasses.replace(BASE, epochs=4)
# with a rate of 1e-3, a GRU was no better than chance after two epochs
RECURRENT = dataclasses.replace(LONGER, lr=3e-3)
STAR = dataclasses.replace(BASE, lr=1e-4, embedding_lr=0.0, alpha_lr=50.0, epochs=1, batch_size=512)
CLOZE = dataclasses.replace(STAR, cloze=256, embedding_lr=0.0, batch_size=256, mean_epochs=8)


def _star(**changes: Any) -> EncoderConfig:
    return EncoderConfig(dataclasses.replace(PRESETS["recommended"], **changes), LENGTH)


MODELS: dict[str, tuple[EncoderConfig, TrainingConfig]] = {
    "ast": (_star(), STAR),
    "cnn": (EncoderConfig(CnnConfig(), LENGTH), LONGER),
    "gru": (EncoderConfig(GruConfig(pooling="mean"), LENGTH), RECURRENT),
    "bigru": (EncoderConfig(BiGruConfig(pooling="mean"), LENGTH), RECURRENT),
    "mean": (EncoderConfig(BagConfig(), LENGTH), BASE),
    "ast, cloze": (_star(), CLOZE),
    "mean, cloze": (EncoderConfig(BagConfig(), LENGTH), dataclasses.replace(BASE, cloze=256, mean_epochs=8)),
}
UNTRAINED = "ast, untrained"
ABLATIONS: dict[str, tuple[EncoderConfig, TrainingConfig]] = {
    UNTRAINED: (_star(), STAR),
    "ast, from the mean": (_star(contrast=0.0), STAR),
    "ast, contrast 2": (_star(contrast=2.0), STAR),
    "ast, LeakyReLU": (_star(leaky_relu=True), STAR),
    "ast, max pool .1": (_star(max_weight=0.1), STAR),
    "ast, two layers": (_star(layers=2), STAR),
    "ast, hard negatives": (_star(), dataclasses.replace(STAR, hard_negatives=1)),
    "ast, softmax-like α": (_star(alpha=1.05), dataclasses.replace(STAR, alpha_lr=0.0)),
}

# Every other model has a configuration of the same name.
READY = {"ast, cloze": "ast", "mean": "bag", "mean, cloze": "bag"}
NEVER_MATTER = ("training.seed", "training.device", "training.checkpoint_steps")
# Options newer than some recorded rows, with the behaviour of training before the option existed.
LATER: Mapping[str, Any] = {
    **{f"encoder.{key}": value for key, value in LATER_OPTIONS.items()},
    "training.inputs_lr": 100.0,
    "training.anchor": "text",
    "training.schedule": "linear",
    "training.held_back": 0.0,
}
OPEN = [*(f"{key}=x" for key in ready.PATHS), "output.path=x"]


def fitted(training: TrainingConfig, links: int) -> TrainingConfig:
    """Return a model's settings for this many links."""
    training = dataclasses.replace(training, batch_size=min(training.batch_size, links // 8))
    if links < FEW:  # an epoch is eight steps, and dev decides when to stop
        training = dataclasses.replace(training, epochs=10 * training.epochs, patience=5)
    return training


def settings_of(model: str, links: int) -> dict[str, Any]:
    """Return the settings that determine a row of the tables, by the keys of a training file."""
    encoder, training = MODELS[model]
    training = fitted(dataclasses.replace(training, dev_documents=DEV_DOCUMENTS), links)
    if encoder.kind == "bag":  # the first stage trains the bag itself
        training = mean_settings(training, links)
    return _flat({"word_vectors": "word-vectors-en", "lsa_dim": 172}, encoder, training)


def ready_settings(model: str) -> dict[str, Any]:
    """Return the same for the model's built-in configuration."""
    name = READY.get(model, model)
    config: TrainConfig = load(ready.find(Path(name), OPEN), TrainConfig, OPEN)
    data: DataConfig = config.data
    return _flat(
        {"word_vectors": data.word_vectors, "lsa_dim": data.lsa_dim}, config.encoder, config.training
    )


def differences(model: str, settings: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return each key in which a row's settings differ from the built-in configuration, with both values."""
    built_in = ready_settings(model)
    unused = {"training.temperature"} if built_in["training.loss"] == "triplet" else set()
    recorded = {**LATER, **settings}
    keys = [key for key in built_in if recorded.get(key) != built_in[key] and key not in unused]
    return {key: (recorded.get(key), built_in[key]) for key in keys}


def _flat(data: Mapping[str, Any], encoder: EncoderConfig, training: TrainingConfig) -> dict[str, Any]:
    tables = {
        "data": data,
        "encoder": {"kind": encoder.kind, "max_length": encoder.max_length}
        | dataclasses.asdict(encoder.model),
        "training": dataclasses.asdict(training),
    }
    values = {f"{table}.{key}": value for table, found in tables.items() for key, value in found.items()}
    # lists, as in JSON
    lists = {key: list(value) for key, value in values.items() if isinstance(value, tuple)}
    return {key: value for key, value in (values | lists).items() if key not in NEVER_MATTER}
