"""Link a corpus with itself: find the documents that are near-duplicates or about the same story."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from indexes.anywhere import AnyCollection
from indexes.dtypes import BoolArray, Float64Array, Int64Array
from indexes.interface import Document
from indexes.text.analysis import Analysis
from linker.base.errors import InputError
from linker.base.logs import logger
from linker.base.progress import bar
from linker.engine.groups import Groups, build_groups
from linker.scoring.groups.asking import Stratum, recall, strata
from linker.scoring.groups.copies import leaders
from linker.scoring.groups.dates import check_dated, days_of, fill_from_texts, near_in_time, places
from linker.scoring.groups.default_model import SHIPPED
from linker.scoring.groups.evidence import FEWEST, PairEvidence
from linker.scoring.groups.finding import gather, origin
from linker.scoring.groups.judgements import JudgedPairs, judged_pairs_of
from linker.scoring.groups.languages import language_of
from linker.scoring.groups.last_grouping import LastGrouping
from linker.scoring.groups.stories import stories_of
from linker.scoring.probability.promise import Promise, promise

ALIKE = 0.5  # minimum cosine of near-duplicates


def group(
    collection: AnyCollection,
    corpus: Sequence[Document],
    rows: Int64Array,
    judged: Mapping[tuple[str, str], bool] | None = None,
    *,
    days: float | None = None,
    precision: float | None = None,
    seed: int = 0,
    kept: LastGrouping | None = None,
) -> Groups:
    """Group the documents in `rows` (int64 [n]), reusing what the last grouping left in `kept`."""
    if not corpus:
        raise InputError("the index has no documents: there is nothing to group")
    order, dates = _ordered(corpus)
    if days is not None:
        check_dated(corpus, dates)
    documents, rows = [corpus[i] for i in order.tolist()], rows[order]
    numbers = {d.id: i for i, d in enumerate(documents)}
    known = judged_pairs_of(judged or {}, numbers, halved=precision is not None, seed=seed)
    if precision is not None and not len(known):
        raise InputError("`precision` has to be tested on judged pairs: pass them with `train`")
    ids, texts = [d.id for d in documents], [d.full_text for d in documents]
    conditions = origin(collection) if kept else ""
    known_pairs = kept.restore(ids, conditions) if kept else None
    new = int(known_pairs[1].sum()) if known_pairs else len(ids)
    with bar(new, "finding pairs", "documents") as meter:
        evidence, findings, queries = gather(
            collection, rows, texts, fill_from_texts(texts, dates), meter.update, known_pairs,
            lambda i: _language(kept, ids[i], texts[i]),
        )  # fmt: skip
    if kept:
        kept.take(ids, conditions, findings, full=known_pairs is None)
    if days is not None:
        evidence = evidence.where(near_in_time(evidence.pairs, dates, days))
    leader = leaders(len(documents), evidence.pairs[evidence.cosine >= ALIKE], texts.__getitem__)
    probabilities, learned = _probabilities(evidence, known)
    stories = stories_of(evidence, probabilities, leader)
    certified, tested, share = None, 0, None
    if precision is not None:
        scores, right = known.within(stories)
        tested = len(right)
        certified = promise(scores, right, precision)
        least = certified.threshold if certified else np.inf
        share = _recall(
            strata(stories, ids, seed),
            judged or {},
            known,
            right & (scores >= least),
            right & (scores < least),
        )
        stories = stories.at_least(least)
        _report(certified, precision, tested)
    metadata = {
        "documents": len(documents), "queries": queries, "pairs": len(evidence.pairs),
        "judged_pairs": len(judged or {}), "learned_from": learned, "tested_on": tested, "days": days,
    }  # fmt: skip
    analysis = Analysis(collection.manifest.analysis)
    groups = build_groups(analysis, documents, order, evidence, stories, dates, certified, metadata, kept)
    return replace(groups, strata=strata(stories, ids, seed), recall=share)


def _language(kept: LastGrouping | None, id_: str, text: str) -> str:
    return kept.language_of(id_, lambda: language_of(text)) if kept else language_of(text)


def _probabilities(evidence: PairEvidence, known: JudgedPairs) -> tuple[Float64Array, int]:
    """Return P(same story) of the pairs, float64 [m], and the number of judged pairs learned from."""
    at, same = known.labels(evidence.pairs)
    model, count = SHIPPED.of_size(evidence.count).adapt(evidence), 0
    if len(at):
        judged = np.zeros(len(evidence.pairs), bool)
        judged[at] = True
        pairs, prior = evidence.where(judged), model
        model = prior.relearn(pairs, same)
        changed = [new != old for new, old in zip(model.weights, prior.weights, strict=True)]
        count = int(np.array(changed)[pairs.kind].sum())
        if count:
            logger.info("P(same story) was also fitted to %s judged pairs", f"{count:,}")
        else:
            logger.warning(
                "%s of the compared pairs are judged, too few to learn P(same story) from: it takes %d of two posts, "
                "of two articles, or of a post and an article, some of which are not about the same story",
                f"{len(at):,}",
                FEWEST,
            )
    return model.probabilities(evidence), count


def _recall(
    samples: Sequence[Stratum],
    judged: Mapping[tuple[str, str], bool],
    known: JudgedPairs,
    kept: BoolArray,
    lost: BoolArray,
) -> tuple[float, float, float] | None:
    """Return the groups' estimated recall and its interval; None unless all pairs drawn between groups are judged.

    `kept` and `lost`, bool [t], mark the correct ones of the t tested pairs: those in a group that meets the threshold,
    and those in a group that does not.
    """
    within, *between = samples
    if known.complete or not all(pair in judged for stratum in between for pair in stratum.pairs):
        return None
    inside = [(within.of, len(kept), int(right.sum())) for right in (kept, lost)]
    outside = [(s.of, len(s.pairs), sum(judged[pair] for pair in s.pairs)) for s in between]
    estimate = recall([*inside, *outside])
    logger.info("recall of the pairs that were compared: %.2f [%.2f, %.2f]", *estimate)
    return estimate


def _report(certified: Promise | None, precision: float, tested: int) -> None:
    if certified is None:
        logger.warning(
            "no threshold guarantees a precision of %g on the %s judged pairs within groups, so only near-duplicates "
            "are grouped: lower `precision`, or judge more pairs (`sample` draws them)",
            precision,
            f"{tested:,}",
        )
        return
    logger.info(
        "groups of probability ≥ %.3f keep a precision of %g over their pairs with 95%% confidence: %s of %s judged "
        "pairs are correct",
        certified.threshold, precision, f"{certified.right:,}", f"{certified.links:,}",
    )  # fmt: skip


def _ordered(documents: Sequence[Document]) -> tuple[Int64Array, Float64Array]:
    """Return the documents' positions sorted by their `places` keys, int64 [n], and their dates in this order, [n]."""
    dates = days_of(documents)
    keys = places([d.id for d in documents], dates)
    order = np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)
    return order, dates[order]
