"""What a training TOML file may say. `linker.config.load` reads it strictly into these."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from linker.training.miners import Miner


@dataclass(frozen=True, slots=True)
class DataConfig:
    """Texts ("queries"), documents and their links (qrels, positive grades), and where word vectors come from."""

    queries: Path
    documents: Path
    train: Path
    dev: Path | None = None
    word_vectors: str = (
        "gensim"  # "gensim" and "lsa" are learned from the documents and texts, "random", or a path
    )
    dim: int = 300  # of learned or random vectors
    lsa_dim: int = 0  # latent semantic dimensions of the corpus to append to the vectors of a file
    lsa_weight: float = 0.5  # their length, relative to the file's
    min_count: int = 2
    max_vocabulary: int = 50_000
    sif: float | None = (
        1e-3  # smooth inverse frequency: rarer words get longer vectors; none: leave their lengths
    )
    word_epochs: int = 10  # passes of gensim


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """The model; what is not given is as the preset says. Its dimension is the word vectors'."""

    kind: Literal["star", "bag", "cnn", "gru", "bigru"] = "star"
    preset: Literal["paper", "recommended"] = "recommended"
    heads: int | None = None
    head_dim: int | None = None
    window: int | None = None
    layers: int | None = None  # of a star, gru or bigru
    alpha: float | None = None
    token_key: bool | None = None
    residual: bool | None = None
    layer_norm: bool | None = None
    pre_norm: bool | None = None
    leaky_relu: bool | None = None
    contrast: float | None = None  # of a star: 0 starts at the mean of vectors
    max_weight: float | None = None
    widths: tuple[int, ...] | None = None  # of a cnn's filters
    filters: int | None = None  # of each width
    dropout: float | None = None  # of a cnn
    hidden: int | None = None  # of a gru or bigru
    pooling: Literal["last", "mean"] | None = None  # of a gru or bigru: its last state, or the mean of all
    projection: int | None = None  # of all but a star
    max_length: int = 512  # tokens when encoding


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """How to learn. Learning rates of α and of the embedding are multiples of `lr`."""

    loss: Literal["infonce", "triplet"] = "infonce"
    temperature: float = 0.05
    margin: float = 0.15
    miner: Miner = "multi-similarity"
    batch_size: int = 64
    epochs: int = 10
    lr: float = 5e-4
    alpha_lr: float = 1.0
    embedding_lr: float = 1.0
    weight_decay: float = 0.0  # AdamW; 0 is Adam
    warmup: float = 0.1  # share of all steps
    clip: float = 1.0  # norm of the gradient
    max_length: int = 256  # tokens in training
    crop: bool = False  # take that many from a random place of a document, not from its start
    word_dropout: float = 0.0  # chance that a token is left out
    hard_negatives: int = 0  # a text: documents that BM25 ranks high and nothing links to it
    negatives_depth: int = 50  # of BM25's ranking to draw them from
    cloze: int = (
        0  # documents a step that also learn from a window of their own as a text (inverse cloze task)
    )
    cloze_window: int = 40  # tokens of such a window, at most half of the document
    mean_epochs: int = 0  # the word vectors first learn as a plain mean, which takes seconds
    teacher: str | None = None  # an encoder by name or path, whose cosines are a second aim (distillation)
    teacher_weight: float = 1.0
    sparse: bool = False  # update only the word vectors of a batch's tokens: for large vocabularies
    dev_documents: int = 5000  # judged against on dev: the linked ones, filled up with BM25's best
    patience: int = 3  # epochs without a better dev MRR
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
            "clip",
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
        for name in (
            "hard_negatives",
            "cloze",
            "mean_epochs",
            "teacher_weight",
            "margin",
            "weight_decay",
            "alpha_lr",
            "embedding_lr",
        ):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"training.{name} must be at least 0")
        if not (0 <= self.warmup < 1 and 0 <= self.word_dropout < 1):
            raise ValueError("training.warmup and training.word_dropout are shares, at least 0 and below 1")


@dataclass(frozen=True, slots=True)
class OutputConfig:
    """Where the model goes; its subfolder training/ keeps the checkpoint and metrics.jsonl."""

    path: Path


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """A whole training file."""

    data: DataConfig
    output: OutputConfig
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)


def given(config: EncoderConfig, names: set[str]) -> dict[str, int | float | bool | tuple[int, ...]]:
    """Return what the file sets among `names`."""
    values = dataclasses.asdict(config)
    return {name: values[name] for name in values if name in names and values[name] is not None}
