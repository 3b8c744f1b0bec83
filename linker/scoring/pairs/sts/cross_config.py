"""Settings of the Cross-BERT-GRU and of its training; loads no model library."""

from dataclasses import dataclass
from typing import Literal

Loss = Literal["cross-entropy", "soft", "soft+mse", "mse"]
# whether the GRU's reset gate acts after the matrix U, as in torch, or before it, as in the paper
Reset = Literal["after", "before"]


@dataclass(frozen=True, slots=True)
class CrossConfig:
    """Settings of the model. With `both_orders`, the logits are the mean over both orders of a pair."""

    hidden: int = 256  # dimension of the GRU's state
    dropout: float = 0.1
    max_length: int = 128  # maximum number of tokens in a pair
    siamese: bool = False
    both_orders: bool = False
    reset: Reset = "after"

    def __post_init__(self) -> None:
        if self.hidden < 1 or self.max_length < 5 or not 0 <= self.dropout < 1:
            raise ValueError("hidden must be at least 1, max_length at least 5, dropout from 0 to below 1")


@dataclass(frozen=True, slots=True)
class StsConfig:
    """Settings of the model and its training. The defaults are the preset `recommended`."""

    hidden: int = 256
    dropout: float = 0.1
    max_length: int = 128
    siamese: bool = True
    frozen: bool = False  # whether the scorer is a head over the vectors of a frozen encoder
    # whether it is a regression over cosines of frozen encoders, word alignment and surface features
    mixed: bool = False
    choose: Literal["folds", "dev"] = "folds"  # which pairs select the regression of the mixed variant
    both_orders: bool = False
    reset: Reset = "after"
    loss: Loss = "soft+mse"
    lr: float = 3e-5  # learning rate of the backbone
    head_lr: float = 1e-3
    weight_decay: float = 0.01
    warmup: float = 0.1  # share of all steps that are used for the warm-up
    schedule: Literal["linear", "constant"] = "linear"  # learning rate schedule after the warm-up
    epochs: int = 6
    batch_size: int = 16
    patience: int = 3  # epochs without a better dev figure before training stops; 0: never
    measure: Literal["spearman", "pearson", "mse"] = "spearman"  # figure that selects the epoch to keep
    # how many layers of the backbone are frozen, from the bottom; if above 0, so are the embeddings
    frozen_layers: int = 0
    precision: Literal["float32", "bfloat16"] = "float32"
    seed: int = 0

    @property
    def model(self) -> CrossConfig:
        """The settings of the model."""
        return CrossConfig(
            self.hidden, self.dropout, self.max_length, self.siamese, self.both_orders, self.reset
        )


PRESETS = {
    "recommended": StsConfig(),
    "frozen": StsConfig(
        frozen=True, dropout=0.0, lr=1e-3, epochs=4, batch_size=128, patience=0, measure="pearson"
    ),
    "mixed": StsConfig(mixed=True, siamese=False),
    "paper": StsConfig(
        siamese=False,
        reset="before",
        loss="cross-entropy",
        lr=1e-5,
        head_lr=1e-5,
        weight_decay=0.0,
        warmup=0.0,
        schedule="constant",
        epochs=10,
        batch_size=64,
        patience=0,
    ),
}
