"""How many epochs to train the encoder of news similarity: the number that is best on held-out pairs."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from linker.base.errors import InputError
from linker.encoders.interface import Encoder
from linker.evaluation.correlation import pearson
from linker.papers.news.articles import NewsPair, targets
from linker.papers.news.siamese import Siamese, cosines, train_frozen, train_tuned
from linker.papers.news.similarity import examples, remembering
from linker.papers.news.similarity_config import SimilarityConfig
from linker.scoring.pairs.data import Pair, groups


def stratified_split(
    pairs: Sequence[NewsPair], share: float, seed: int
) -> tuple[list[NewsPair], list[NewsPair]]:
    """Hold out about `share` of the pairs of each language pair; return the rest and the held-out pairs, in order.

    Pairs that share an article, directly or via other pairs, stay together. Raises InputError if either part is empty.
    """
    items = groups([Pair(pair.id, pair.first.full, pair.second.full) for pair in pairs])
    room: dict[str, float] = defaultdict(float)
    for pair in pairs:
        room[pair.kind] += share
    dev_rows: set[int] = set()
    for number in np.random.default_rng([seed, 4]).permutation(len(items)).tolist():
        item = items[number]
        kind = pairs[item[0]].kind
        if len(item) <= round(room[kind]):
            dev_rows.update(item)
            room[kind] -= len(item)
    rest = [pair for row, pair in enumerate(pairs) if row not in dev_rows]
    dev = [pair for row, pair in enumerate(pairs) if row in dev_rows]
    if not rest or not dev:
        raise InputError(
            f"{len(pairs)} pairs are too few to hold out {share:g} of each language pair: give more, or --epochs"
        )
    return rest, dev


def best_epochs(
    pairs: Sequence[NewsPair], config: SimilarityConfig, share: float = 0.2, encoder: Encoder | None = None
) -> tuple[int, list[float]]:
    """Return how many epochs are best, and Pearson's r on the held-out pairs after each.

    An encoder is trained for the configured epochs on the rest of the pairs (Singh et al., 2022, split 80 to 20); r is
    that of its cosine. If tied, the fewest epochs win. Raises the same InputErrors as `stratified_split`.
    """
    rest, dev = stratified_split(pairs, share, config.siamese.seed)
    gold, found = targets(dev), list[float]()
    sides = [p.first.full for p in dev], [p.second.full for p in dev]

    def judge(epoch: int, siamese: Siamese) -> None:
        found.append(pearson(cosines(siamese, *sides), gold))

    siamese = config.siamese
    if siamese.frozen:
        base = encoder or remembering(siamese.backbone)
        train_frozen(base, examples(rest), siamese, after_epoch=judge)
    else:
        from linker.scoring.pairs.backbone import load_backbone

        train_tuned(load_backbone(siamese.backbone), examples(rest), siamese, judge)
    return 1 + int(np.argmax(np.nan_to_num(found, nan=-2.0))), found
