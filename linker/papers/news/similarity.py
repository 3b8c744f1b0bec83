"""News similarity: the cosine of a Siamese encoder, named entities and other features, fused by a small network.

The presets `paper` and `paper_code` are the system of Singh et al. (SemEval-2022 Task 8); `recommended` fuses more
features.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from indexes.dtypes import Float64Array, Int64Array
from linker.base.errors import InputError
from linker.encoders.interface import Encoder
from linker.encoders.loading import load_encoder
from linker.papers.news.articles import Article, NewsPair, scores_of, targets
from linker.papers.news.entities import GROUPS, entity_cosines, group_counts
from linker.papers.news.fusion import FusionNetwork, fit_fusion
from linker.papers.news.overlap import KINDS, Overlap
from linker.papers.news.recognise import Recogniser
from linker.papers.news.siamese import (
    FrozenSiamese,
    RememberingEncoder,
    Siamese,
    WeightedPairs,
    cosines,
    train_frozen,
    train_tuned,
)
from linker.papers.news.similarity_config import Family, SimilarityConfig
from linker.papers.news.translated import translated
from linker.scoring.pairs.translate import Translator
from linker.scoring.pairs.translations import ByLanguage

ENGLISH = "en"
Columns = dict[str, Float64Array]  # name of a feature → its values [n]


@dataclass(frozen=True, slots=True)
class Predictions:
    """Scores, float64 [n], from 1 (the same story) to 4 for the pairs `ids`, and the features behind them."""

    ids: tuple[str, ...]
    scores: Float64Array
    columns: Columns


@dataclass(frozen=True, slots=True)
class NewsSimilarity:
    """A trained model; `kinds` are the language pairs it was trained on, `overlap` is None if no feature needs it.

    Without a `recogniser`, the entity features are set to their mean over the training pairs, which is uninformative.
    With a `translator`, entities and words are compared in English.
    """

    config: SimilarityConfig
    siamese: Siamese
    overlap: Overlap | None
    kinds: tuple[str, ...]
    fusion: FusionNetwork
    recogniser: Recogniser | None
    translator: Translator | None = None

    def columns(self, pairs: Sequence[NewsPair]) -> Columns:
        """Return features of pairs by name, float64 [n]. Raises InputError, MissingExtraError."""
        return {
            **self._missing(len(pairs)),
            **self._fixed(pairs),
            **encoder_columns(self.siamese, pairs, self.config.features),
        }

    def predict(self, pairs: Sequence[NewsPair]) -> Predictions:
        """Return the predicted scores of pairs, whether or not they have a score. Raises as `columns` does."""
        columns = self.columns(pairs)
        similarities = self.fusion.predict(_matrix(columns, self.names))
        return Predictions(tuple(pair.id for pair in pairs), scores_of(similarities), columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, in the order of the fusion's input."""
        return feature_names(self.config.features, self.kinds)

    def _missing(self, count: int) -> Columns:
        """Return the means that stand in for the entity features if entities are not extracted."""
        if self.recogniser is not None:
            return {}
        means = zip(self.names, self.fusion.mean.tolist(), strict=True)
        return {name: np.full(count, mean) for name, mean in means if name in GROUPS}

    def _fixed(self, pairs: Sequence[NewsPair]) -> Columns:
        compared = self.compared(pairs)
        kinds = kind_columns(pairs, self.kinds)
        return fixed_columns(compared, self.config.features, self.recogniser, self.overlap) | kinds

    def compared(self, pairs: Sequence[NewsPair]) -> list[NewsPair]:
        """Return the pairs as used to compare entities and words: in English, if there is a translator."""
        return translated(pairs, self.translator, ENGLISH)


def train(
    pairs: Sequence[NewsPair],
    config: SimilarityConfig,
    *,
    pseudo: Sequence[NewsPair] = (),
    recogniser: Recogniser | None = None,
    encoder: Encoder | None = None,
    translator: Translator | None = None,
) -> NewsSimilarity:
    """Return a model trained on scored pairs, from the pretrained encoder; `pseudo` pairs train the encoder only.

    `recogniser`, `encoder` and `translator` replace those named in the configuration, to share their caches. Raises
    InputError if there are fewer than four pairs or a pair has no score; MissingExtraError naming the extra.
    """
    if len(pairs) < 4:
        raise InputError(f"{len(pairs)} pairs are too few to train on: give at least 4, preferably hundreds")
    recogniser = recogniser or Recogniser(dict(config.pipelines))
    fit = siamese_trainer(config, encoder)
    kinds = tuple(sorted({pair.kind for pair in pairs})) if "languages" in config.features else ()
    translator = translator or translator_of(config)
    compared = translated(pairs, translator, ENGLISH)
    texts = [article.full for pair in compared for article in (pair.first, pair.second)]
    overlap = Overlap.fit(dict.fromkeys(texts)) if "overlap" in config.features else None
    fixed = fixed_columns(compared, config.features, recogniser, overlap) | kind_columns(pairs, kinds)
    learned = out_of_fold(pairs, pseudo, config, fit) if config.folds > 1 else None
    siamese = fit(pairs, pseudo)
    learned = encoder_columns(siamese, pairs, config.features) if learned is None else learned
    features = _matrix({**fixed, **learned}, feature_names(config.features, kinds))
    fusion = fit_fusion(features, targets(pairs), config.fusion)
    return NewsSimilarity(config, siamese, overlap, kinds, fusion, recogniser, translator)


def translator_of(config: SimilarityConfig) -> Translator | None:
    """Return the translator that a configuration names, or None."""
    return ByLanguage(dict(config.translators)) if config.translators else None


Trainer = Callable[[Sequence[NewsPair], Sequence[NewsPair]], Siamese]


def siamese_trainer(config: SimilarityConfig, encoder: Encoder | None = None) -> Trainer:
    """Return a function (gold pairs, pseudo-labelled pairs) → encoder; each call starts from the pretrained one."""
    siamese = config.siamese
    early = replace(siamese, epochs=config.pseudo_epochs)
    if siamese.frozen:
        base = encoder or remembering(siamese.backbone)

        def frozen(pairs: Sequence[NewsPair], pseudo: Sequence[NewsPair]) -> Siamese:
            if not pseudo or not config.pseudo_epochs:
                return train_frozen(base, examples(pairs, pseudo, config.pseudo_weight), siamese)
            return train_frozen(base, examples(pairs), siamese, train_frozen(base, examples(pseudo), early))

        return frozen

    def tuned(pairs: Sequence[NewsPair], pseudo: Sequence[NewsPair]) -> Siamese:
        from linker.scoring.pairs.backbone import load_backbone

        backbone = load_backbone(siamese.backbone)
        if not pseudo or not config.pseudo_epochs:
            return train_tuned(backbone, examples(pairs, pseudo, config.pseudo_weight), siamese)
        return train_tuned(train_tuned(backbone, examples(pseudo), early).backbone, examples(pairs), siamese)

    return tuned


def remembering(backbone: str, *, fetch: bool = True) -> RememberingEncoder:
    """Load a frozen backbone that caches its vectors; raises the same errors as `load_encoder`."""
    return RememberingEncoder(load_encoder(backbone, fetch=fetch))


def examples(
    pairs: Sequence[NewsPair], pseudo: Sequence[NewsPair] = (), pseudo_weight: float = 1.0
) -> WeightedPairs:
    """Return the examples of all pairs, each text once. Raises InputError if a pair has no score."""
    both = [*pairs, *pseudo]
    rows: dict[str, int] = {}
    for pair in both:
        for article in (pair.first, pair.second):
            rows.setdefault(article.full, len(rows))
    weights = np.repeat([1.0, pseudo_weight], [len(pairs), len(pseudo)])
    first, second = (
        np.array([rows[article.full] for article in articles], np.int64)
        for articles in ([p.first for p in both], [p.second for p in both])
    )
    return WeightedPairs(list(rows), first, second, targets(both), weights)


def out_of_fold(
    pairs: Sequence[NewsPair], pseudo: Sequence[NewsPair], config: SimilarityConfig, fit: Trainer
) -> Columns:
    """Return the encoder features of all pairs, [n] each, from encoders trained without the pair in question.

    Pseudo-labelled pairs that contain an article of a fold are also left out of that fold's training data.
    """
    columns: Columns = {}
    for fold in split(len(pairs), config.folds, config.siamese.seed):
        held_out = [pairs[row] for row in fold]
        texts = {article.full for pair in held_out for article in (pair.first, pair.second)}
        within = set(fold.tolist())
        siamese = fit(
            [pair for row, pair in enumerate(pairs) if row not in within],
            [p for p in pseudo if p.first.full not in texts and p.second.full not in texts],
        )
        for name, values in encoder_columns(siamese, held_out, config.features).items():
            columns.setdefault(name, np.zeros(len(pairs)))[fold] = values
    return columns


def split(count: int, folds: int, seed: int) -> list[Int64Array]:
    """Return a random partition of rows 0 … count − 1 into at most `folds` nonempty parts, each sorted."""
    order = np.random.default_rng(seed).permutation(count)
    return [np.sort(part) for part in np.array_split(order, min(folds, count))]


def feature_names(families: Sequence[Family], kinds: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns of feature families, in order."""
    names: dict[Family, tuple[str, ...]] = {
        "entities": tuple(GROUPS),
        "encoder": ("cosine",),
        "headline": ("headline",),
        "backbone": ("backbone",),
        "overlap": KINDS,
        "languages": tuple(f"is {kind}" for kind in kinds),
    }
    return tuple(name for family in families for name in names[family])


def fixed_columns(
    pairs: Sequence[NewsPair],
    families: Sequence[Family],
    recogniser: Recogniser | None,
    overlap: Overlap | None,
) -> Columns:
    """Return the features, [n] each, that compare entities, words, names and numbers."""
    first, second = [pair.first for pair in pairs], [pair.second for pair in pairs]
    columns: Columns = {}
    if "entities" in families and recogniser is not None:
        columns |= entity_columns(first, second, recogniser)
    if overlap is not None:
        shared = overlap.cosines([a.full for a in first], [a.full for a in second])
        columns |= dict(zip(KINDS, shared.T, strict=True))
    return columns


def kind_columns(pairs: Sequence[NewsPair], kinds: Sequence[str]) -> Columns:
    """Return, for each language pair of `kinds`, which pairs are in it: float64 [n] of 0 and 1."""
    return {f"is {kind}": np.array([float(pair.kind == kind) for pair in pairs]) for kind in kinds}


def entity_columns(first: Sequence[Article], second: Sequence[Article], recogniser: Recogniser) -> Columns:
    """Return the cosine of the counts, float64 [n], of each entity group. Raises as `Recogniser.mentions` does."""
    articles = [*first, *second]
    mentions = recogniser.mentions(articles)
    counts = [
        group_counts(of_article, article.date) for of_article, article in zip(mentions, articles, strict=True)
    ]
    groups = entity_cosines(counts[: len(first)], counts[len(first) :])
    return dict(zip(GROUPS, groups.T, strict=True))


def encoder_columns(siamese: Siamese, pairs: Sequence[NewsPair], families: Sequence[Family]) -> Columns:
    """Return the cosines, float64 [n], that the families need: between articles, headlines, or untrained vectors."""
    first, second = [pair.first for pair in pairs], [pair.second for pair in pairs]
    full = [a.full for a in first], [a.full for a in second]
    columns = {}
    if "encoder" in families:
        columns["cosine"] = cosines(siamese, *full)
    if "headline" in families:
        columns["headline"] = cosines(siamese, [a.headline for a in first], [a.headline for a in second])
    if "backbone" in families and isinstance(siamese, FrozenSiamese):
        columns["backbone"] = cosines(siamese.encoder, *full)
    return columns


def _matrix(columns: Columns, names: Sequence[str]) -> Float64Array:
    return np.column_stack([columns[name] for name in names])
