"""The hyperparameters of the models, defined once for the models, config.json and training files."""

from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True, slots=True)
class StarConfig:
    """Hyperparameters of the Adaptive Star Transformer; `PRESETS` has two sets.

    `dim` is the dimension of the word vectors and of the embedding. Raises ValueError if a value is out of range.
    """

    dim: int = 300
    heads: int = 10
    head_dim: int = 30
    window: int = 2  # c: tokens on either side
    layers: int = 1  # T
    alpha: float = 1.5  # every head's initial α, between 1 and 2
    # "sigmoid" keeps α strictly between 1 and 2; "clamped", Danovitch's form, clips α to this range after each update.
    alpha_form: Literal["sigmoid", "clamped"] = "sigmoid"
    token_key: bool = True  # from the second layer on, a token also attends to its own word vector
    first_token_key: bool = (
        False  # in the first layer, too, although the token itself is its word vector there
    )
    # Residual attention whose output projection starts at zero, so that training starts at the mean of the vectors.
    residual: bool = False
    # Queries and keys come from normalised vectors: the mean of many vectors is too short to discriminate.
    pre_norm: bool = False
    layer_norm: bool = False
    leaky_relu: bool = False
    # κ: before training, the relay prefers tokens unlike the mean; `dim` is divided among its heads. None: off.
    contrast: float | None = None
    max_weight: float | None = None  # initial weight of the max pool (learned); None: the paper's fixed 1
    key_inputs: bool = False  # the relay also scores a token by its idf, count and first position
    score: Literal["dot", "cosine"] = "dot"  # of a query and a key: scaled dot product, or cosine
    relay_key: bool = True  # the relay attends to itself too, as in the Star Transformer
    entmax: Literal["own", "package"] = "own"  # the package needs the extra `entmax` and is slower

    def __post_init__(self) -> None:
        if min(self.dim, self.heads, self.head_dim, self.layers) < 1 or self.window < 0:
            raise ValueError("dim, heads, head_dim and layers must be at least 1 and window at least 0")
        if not 1 < self.alpha < 2:
            raise ValueError(f"alpha = {self.alpha}: it must start strictly between 1 and 2")
        if self.contrast is not None and not self.pre_norm:
            raise ValueError(
                "contrast multiplies cosines, so it needs pre_norm = true (the preset `paper` has neither)"
            )
        if self.score not in ("dot", "cosine") or self.entmax not in ("own", "package"):
            raise ValueError(
                f"score = {self.score!r}, entmax = {self.entmax!r}: the first must be 'dot' or 'cosine', "
                "the second 'own' or 'package'"
            )
        if self.contrast is not None and self.score == "cosine":
            raise ValueError(
                "contrast has no effect on cosine scores: leave out contrast or score = 'cosine'"
            )


# Options that config.json lists only if they differ from these values, which are those of older models.
LATER_OPTIONS = {
    "key_inputs": False,
    "score": "dot",
    "relay_key": True,
    "entmax": "own",
    "alpha_form": "sigmoid",
    "first_token_key": False,
}

PRESETS: dict[str, StarConfig] = {
    "paper": StarConfig(alpha_form="clamped", first_token_key=True),
    "recommended": StarConfig(
        heads=4, head_dim=32, residual=True, pre_norm=True, contrast=1.0, max_weight=0.0
    ),
}


@dataclass(frozen=True, slots=True)
class BagConfig:
    """Hyperparameters of the mean of word vectors with `dim` dimensions. Raises ValueError if one is out of range."""

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
    """Hyperparameters of the CNN over word vectors with `dim` dimensions. Raises ValueError if one is out of range."""

    dim: int = 300
    widths: tuple[int, ...] = (3, 4, 5)  # tokens that a filter sees
    filters: int = 100  # number of filters per width
    dropout: float = 0.0  # share of the filters' outputs dropped in training
    projection: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", tuple(self.widths))  # JSON has no tuples
        if not self.widths or min(self.dim, self.filters, *self.widths) < 1:
            raise ValueError(
                "dim, filters and widths must be at least 1, and there must be at least one width"
            )
        if self.projection is not None and self.projection < 1:
            raise ValueError("projection must be at least 1")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout = {self.dropout}: it must be at least 0 and below 1")

    @property
    def output(self) -> int:
        """The embedding's dimension."""
        return self.projection or self.dim


@dataclass(frozen=True, slots=True)
class GruConfig:
    """Hyperparameters of the GRU; `dim` is the word vectors' dimension.

    `projection` is the embedding's dimension, by default `dim`; with 0, the embedding is the pooled states. `pooling`
    takes the last state or the mean of all states. With the mean, gradients reach every state directly, so it learns
    from few links, and keeps the beginning of a long text. Raises ValueError if a value is out of range.
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
    """Hyperparameters of the bidirectional GRU; the defaults give about as many parameters as the GRU's."""

    bidirectional: ClassVar[bool] = True
    hidden: int = 160


ModelConfig = StarConfig | BagConfig | CnnConfig | GruConfig | BiGruConfig
Kind = Literal["star", "bag", "cnn", "gru", "bigru"]
KINDS: dict[str, type[ModelConfig]] = {
    "star": StarConfig,
    "bag": BagConfig,
    "cnn": CnnConfig,
    "gru": GruConfig,
    "bigru": BiGruConfig,
}


def kind_of(config: ModelConfig) -> str:
    """Return the key in `KINDS` of a configuration's type."""
    return next(kind for kind, cls in KINDS.items() if cls is type(config))
