"""The hyperparameters of the models, each named once: for the models, for config.json and for training files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True, slots=True)
class StarConfig:
    """The model's hyperparameters; `PRESETS` names two sets. `dim` is the vectors' and the embedding's dimension."""

    dim: int = 300
    heads: int = 10
    head_dim: int = 30
    window: int = 2  # c: tokens on either side
    layers: int = 1  # T
    alpha: float = 1.5  # where every head's α starts, between 1 and 2
    token_key: bool = True  # from the second layer on, a token also attends to its own word vector
    residual: bool = (
        False  # add to the input, from a zero-initialised output: training starts at the mean of vectors
    )
    pre_norm: bool = (
        False  # queries and keys see normalised vectors: a mean of many is too short to choose by
    )
    layer_norm: bool = False
    leaky_relu: bool = False
    contrast: float | None = None  # the relay starts at what the mean does not say; its heads share out `dim`
    max_weight: float | None = None  # start of a learned weight on the max pool; None: the paper's fixed 1

    def __post_init__(self) -> None:
        if min(self.dim, self.heads, self.head_dim, self.layers) < 1 or self.window < 0:
            raise ValueError("dim, heads, head_dim and layers must be at least 1 and window at least 0")
        if not 1 < self.alpha < 2:
            raise ValueError(f"alpha = {self.alpha}: a start strictly between 1 and 2 is needed")
        if self.contrast is not None and not self.pre_norm:
            raise ValueError(
                "contrast is a factor of cosines: it needs pre_norm = true (the preset paper has neither)"
            )


PRESETS: dict[str, StarConfig] = {
    "paper": StarConfig(),
    "recommended": StarConfig(
        heads=4, head_dim=32, residual=True, pre_norm=True, contrast=1.0, max_weight=0.0
    ),
}


@dataclass(frozen=True, slots=True)
class BagConfig:
    """`dim` is the word vectors' dimension; `projection`, when given, the embedding's."""

    dim: int = 300
    projection: int | None = None

    def __post_init__(self) -> None:
        if self.dim < 1 or (self.projection is not None and self.projection < 1):
            raise ValueError("dim and projection must be at least 1")

    @property
    def output(self) -> int:
        """The embedding's dimension."""
        return self.projection or self.dim


@dataclass(frozen=True, slots=True)
class CnnConfig:
    """`dim` is the word vectors' dimension; `projection` is the embedding's, by default `dim`."""

    dim: int = 300
    widths: tuple[int, ...] = (3, 4, 5)  # tokens that a filter sees
    filters: int = 100  # of each width
    dropout: float = 0.0  # share of the filters' answers, in training
    projection: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", tuple(self.widths))  # JSON gives a list
        if not self.widths or min(self.dim, self.filters, *self.widths) < 1:
            raise ValueError("dim, filters and widths must be at least 1, with one width or more")
        if self.projection is not None and self.projection < 1:
            raise ValueError("projection must be at least 1")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout = {self.dropout}: a share, at least 0 and below 1, is needed")

    @property
    def output(self) -> int:
        """The embedding's dimension."""
        return self.projection or self.dim


@dataclass(frozen=True, slots=True)
class GruConfig:
    """`dim` is the word vectors' dimension; `projection` the embedding's, by default `dim`, 0: the bare states.

    `pooling` takes the last state of a text, or the mean of all: which the gradient reaches at once, so that it learns
    from few links, and in which a long text does not forget how it began.
    """

    bidirectional: ClassVar[bool] = False
    dim: int = 300
    hidden: int = 256  # the state's dimension in each direction
    layers: int = 1
    projection: int | None = None
    pooling: Literal["last", "mean"] = "last"

    def __post_init__(self) -> None:
        if min(self.dim, self.hidden, self.layers) < 1:
            raise ValueError("dim, hidden and layers must be at least 1")
        if self.projection is not None and self.projection < 0:
            raise ValueError("projection must be at least 1, or 0 for none")
        if self.pooling not in ("last", "mean"):
            raise ValueError(f"pooling must be 'last' or 'mean', not {self.pooling!r}")

    @property
    def output(self) -> int:
        """The embedding's dimension."""
        states = self.hidden * (2 if self.bidirectional else 1)
        return states if self.projection == 0 else self.projection or self.dim


@dataclass(frozen=True, slots=True)
class BiGruConfig(GruConfig):
    """The same in both directions; the default has about as many parameters."""

    bidirectional: ClassVar[bool] = True
    hidden: int = 160


ModelConfig = StarConfig | BagConfig | CnnConfig | GruConfig | BiGruConfig
KINDS: dict[str, type[ModelConfig]] = {
    "star": StarConfig,
    "bag": BagConfig,
    "cnn": CnnConfig,
    "gru": GruConfig,
    "bigru": BiGruConfig,
}


def kind_of(config: ModelConfig) -> str:
    """Return the name in `KINDS` of a configuration's type."""
    return next(kind for kind, cls in KINDS.items() if cls is type(config))
