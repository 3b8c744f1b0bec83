"""The settings of a training file (TOML), which `linker.base.config.load` reads strictly into these classes."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from linker.base.config import changed
from linker.base.errors import ConfigError
from linker.encoders.configs import KINDS, PRESETS, Kind, ModelConfig, StarConfig, kind_of
from linker.training.losses import Miner
from linker.training.schedule import Schedule


@dataclass(frozen=True, slots=True)
class DataConfig:
    """Files of texts ("queries"), documents and their links (qrels, positive grades); the source of word vectors."""

    queries: Path
    documents: Path
    train: Path
    dev: Path | None = None
    # "gensim" and "lsa" are learned from the documents and texts; otherwise "random" or a path.
    word_vectors: str = "gensim"
    dim: int = 300  # dimension of learned or random vectors
    lsa_dim: int = 0  # latent semantic dimensions of the corpus, appended to a file's vectors
    lsa_weight: float = 0.5  # length of that part, relative to the part from the file
    min_count: int = 2
    max_vocabulary: int = 50_000
    # smooth inverse frequency: rarer words get longer vectors; None keeps the lengths
    sif: float | None = 1e-3
    rescale: bool = True  # scale vectors to a mean length of 1, so that learning rates are comparable
    word_epochs: int = 10  # number of gensim's passes over the texts


@dataclass(frozen=True, slots=True)
class _Choice:
    """The keys of a table `[encoder]` other than the model's hyperparameters."""

    kind: Kind = "star"
    preset: Literal["paper", "recommended"] = "recommended"  # used if kind = "star"
    max_length: int = 512


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """The model. In a file, `kind` and `preset` select it, together with its hyperparameters.

    The model's `dim` equals the word vectors' and is not given in a file.
    """

    model: ModelConfig = PRESETS["recommended"]
    max_length: int = 512  # tokens per text when encoding

    @property
    def kind(self) -> str:
        """Name of the model."""
        return kind_of(self.model)

    @classmethod
    def read_table(cls, values: Mapping[str, Any], where: str, prefix: str) -> Self:
        """Return the table `[encoder]` of a file. Raises ConfigError naming `where` and the wrong key."""
        choices = {f.name for f in dataclasses.fields(_Choice)}
        choice = changed(_Choice(), {k: v for k, v in values.items() if k in choices}, where, prefix)
        model = PRESETS[choice.preset] if choice.kind == "star" else KINDS[choice.kind]()
        rest = {key: value for key, value in values.items() if key not in choices}
        if isinstance(model, StarConfig) and rest.get("score") == "cosine":
            # With a cosine as the score, the preset's contrast would cancel out.
            model = dataclasses.replace(model, contrast=None)
        hyperparameters = {f.name for f in dataclasses.fields(model)}
        for key in rest:
            if key == "dim":
                raise ConfigError(f"{where}: {prefix}dim is that of the word vectors: leave it out")
            if key not in hyperparameters and any(
                key == f.name for kind in KINDS.values() for f in dataclasses.fields(kind)
            ):
                raise ConfigError(
                    f"{where}: {prefix}{key} does not apply to the kind {choice.kind!r}: leave it out"
                )
        return cls(changed(model, rest, where, prefix, also=sorted(choices)), choice.max_length)


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """The settings of the training loop. Raises ValueError if a value is out of range.

    `alpha_lr`, `embedding_lr` and `inputs_lr` (of the star's `key_inputs`) are multiples of `lr`.
    """

    loss: Literal["infonce", "triplet", "multi-similarity"] = "infonce"
    # For the triplet and multi-similarity losses: an anchor's negatives are of the other kind (texts or documents) or,
    # with "both" and the triplet loss, of either kind.
    anchor: Literal["text", "document", "both"] = "text"
    temperature: float = 0.05
    margin: float = 0.15
    miner: Miner = "multi-similarity"
    batch_size: int = 64
    epochs: int = 10
    lr: float = 5e-4
    alpha_lr: float = 1.0
    embedding_lr: float = 1.0
    inputs_lr: float = 100.0
    weight_decay: float = 0.0  # weight decay of AdamW; 0 makes it Adam
    warmup: float = 0.1  # share of all steps in which the learning rate rises
    schedule: Schedule = "linear"  # after the warm-up, the learning rate falls to 0 or is constant
    clip: float = 1.0  # maximum norm of the gradient; inf: no limit
    max_length: int = 256  # tokens per text in training
    crop: bool = False  # take these tokens from a random position of a document, not from its start
    word_dropout: float = 0.0  # probability that a token is left out
    hard_negatives: int = 0  # number of hard negatives per text: unlinked documents that BM25 ranks high
    negatives_depth: int = 50  # depth of BM25's ranking from which these are drawn
    # Number of documents per step that must also be found from a window of their own text (inverse cloze task).
    cloze: int = 0
    cloze_window: int = 40  # tokens of such a window, at most half of the document
    mean_epochs: int = 0  # first epochs, which train only the word vectors, as a plain mean, in seconds
    held_back: float = 0.0  # share of the links that only the star's key inputs and α see at first
    teacher: str | None = None  # an encoder by name or path, whose cosines are a second target (distillation)
    teacher_weight: float = 1.0
    sparse: bool = False  # update only the word vectors of a batch's tokens, for large vocabularies
    dev_documents: int = 5000  # number of candidates on dev: the linked documents, topped up with BM25's best
    patience: int = 3  # epochs without a better dev MRR before training stops
    precision: Literal["float32", "bfloat16"] = "float32"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    checkpoint_steps: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        positive = (
            "temperature",
            "batch_size",
            "epochs",
            "lr",
            "max_length",
            "patience",
            "checkpoint_steps",
            "negatives_depth",
            "cloze_window",
            "dev_documents",
        )
        for name in positive:
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"training.{name} must be above 0")
        if not self.clip > 0:
            raise ValueError("training.clip must be above 0")
        if self.anchor == "both" and self.loss != "triplet":
            raise ValueError(f"training.anchor = 'both' is for loss = 'triplet', not {self.loss!r}")
        for name in (
            "hard_negatives",
            "cloze",
            "mean_epochs",
            "teacher_weight",
            "margin",
            "weight_decay",
            "alpha_lr",
            "embedding_lr",
            "inputs_lr",
        ):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"training.{name} must be at least 0")
        if not all(0 <= share < 1 for share in (self.warmup, self.word_dropout, self.held_back)):
            raise ValueError(
                "training.warmup, training.word_dropout and training.held_back must be at least 0 and below 1"
            )


@dataclass(frozen=True, slots=True)
class OutputConfig:
    """The folder of the model; its subfolder training/ holds the checkpoint and metrics.jsonl."""

    path: Path


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """A complete training file."""

    data: DataConfig
    output: OutputConfig
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
