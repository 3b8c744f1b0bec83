"""Settings of a news similarity model, and its presets."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from linker.base.errors import ConfigError
from linker.papers.news.fusion import FusionConfig
from linker.papers.news.recognise import DEFAULT
from linker.papers.news.siamese import SiameseConfig

Family = Literal["entities", "encoder", "headline", "backbone", "overlap", "languages"]
FROZEN = SiameseConfig()
TUNED = SiameseConfig("sentence-transformers/LaBSE", frozen=False, epochs=4, batch_size=8, lr=2e-5)


@dataclass(frozen=True, slots=True)
class SimilarityConfig:
    """All settings of a model. The defaults are the preset `recommended`.

    `folds`: the fusion learns from out-of-fold cosines, with one encoder per fold; below 2, from cosines of the final
    encoder. `pseudo_epochs`: epochs on pseudo-labelled pairs only, before the graded pairs; 0 mixes both, with
    pseudo-labelled pairs weighted by `pseudo_weight`. `pipelines` are pairs (language, spaCy pipeline), with "" for
    all other languages; `translators` likewise (language, translator): articles are translated into English before
    entities and words are compared.
    """

    siamese: SiameseConfig = FROZEN
    fusion: FusionConfig = field(
        default_factory=lambda: FusionConfig(solver="lbfgs", penalty=1.0, epochs=300, members=5)
    )
    features: tuple[Family, ...] = ("entities", "encoder", "headline", "backbone", "overlap", "languages")
    folds: int = 5
    pseudo_epochs: int = 1
    pseudo_weight: float = 1.0
    pipelines: tuple[tuple[str, str], ...] = (("", DEFAULT),)
    translators: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if "backbone" in self.features and not self.siamese.frozen:
            raise ValueError(
                "the feature 'backbone' is a frozen encoder's cosine: remove it for a tuned encoder"
            )
        if not self.features:
            raise ValueError("a model needs at least one feature")


_PAPER = SimilarityConfig(
    siamese=replace(TUNED, optimizer="adam", warmup=0.0),
    fusion=FusionConfig(output="sigmoid"),
    features=("entities", "encoder"),
    pseudo_epochs=0,
)
PRESETS = {
    "recommended": SimilarityConfig(),
    # Learns from `event_pairs`: the encoder is not trained, so no folds are needed.
    "event": SimilarityConfig(
        siamese=replace(FROZEN, epochs=0),
        fusion=FusionConfig(output="sigmoid", solver="lbfgs", penalty=1.0, epochs=300, members=5),
        features=("entities", "headline", "backbone", "overlap"),
        folds=0,
        pseudo_epochs=0,
    ),
    "paper": _PAPER,
    "paper_code": replace(_PAPER, fusion=FusionConfig(output="linear")),
}


def configure(
    preset: str,
    siamese: Mapping[str, Any],
    folds: int | None = None,
    pipelines: tuple[tuple[str, str], ...] | None = None,
    seed: int = 0,
    entities: bool = True,
    translators: Mapping[str, str] | None = None,
) -> SimilarityConfig:
    """Return a preset with some encoder settings changed; a tuned encoder defaults to the paper's settings.

    Without `entities`, the model has no entity features.

    Raises ConfigError if there is no such preset, TypeError if `siamese` holds an unknown setting.
    """
    if preset not in PRESETS:
        raise ConfigError(f"there is no preset {preset!r}: choose one of {', '.join(PRESETS)}")
    base = PRESETS[preset]
    frozen = siamese.get("frozen", base.siamese.frozen)
    default = FROZEN if frozen else TUNED
    encoder = replace(base.siamese if base.siamese.frozen == frozen else default, **siamese, seed=seed)
    left_out = {*(() if frozen else ("backbone",)), *(() if entities else ("entities",))}
    features = tuple(name for name in base.features if name not in left_out)
    return replace(
        base,
        siamese=encoder,
        fusion=replace(base.fusion, seed=seed),
        features=features,
        folds=base.folds if folds is None else folds,
        pipelines=pipelines or base.pipelines,
        translators=tuple((translators or {}).items()),
    )
