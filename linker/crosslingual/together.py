"""Linking two collections in one language: candidates from an index, a ranker, and a joint decision on all texts."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from indexes.dtypes import BoolArray, Float64Array
from indexes.errors import MissingExtraError
from indexes.fusion import zscores
from indexes.hybrid import HybridIndex
from linker.base.errors import InputError
from linker.base.logs import logger
from linker.base.progress import bar
from linker.crosslingual.options import Cardinality, LinkOptions
from linker.crosslingual.scoring.assignment import one_to_one
from linker.crosslingual.scoring.candidates import Candidates
from linker.crosslingual.sides import Side, analysis_of
from linker.engine.building import create
from linker.engine.engine import Engine
from linker.engine.evidence import Span, evidence
from linker.engine.folding import fold
from linker.scoring.probability.competition import Kind, Lists
from linker.scoring.probability.deciding import FEWEST as FEWEST_HELD
from linker.scoring.probability.deciding import Choice, Decision, Known, decide
from linker.scoring.probability.promise import least_probability
from linker.scoring.ranking import pooled
from linker.scoring.ranking.candidates import Gatherer, Pool, PoolSettings, deep_enough, relevant_of
from linker.scoring.ranking.ranker import BATCH, Ranker
from linker.scoring.ranking.training import FEWEST, Training, train

Words = tuple[tuple[str, float], ...]
# Candidates for a ranker trained on known links; `deep_enough` may raise `bm25`.
SETTINGS = PoolSettings(bm25=30, dense=15)
KINDS: Mapping[Cardinality | None, Kind | None] = {
    None: None, "one-to-one": "one-to-one", "many-to-one": "none"
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Together:
    """The linked texts, by id: documents with P(link), best first; P(none); near copies of the first document.

    `evidence`: the words that each text shares with its first document, linked or not, and their weights, and the
    passage that it is about.
    """

    run: dict[str, dict[str, float]]
    none: dict[str, float]
    copies: dict[str, list[str]]
    metadata: dict[str, Any]
    proposed: list[tuple[str, str, float]]
    evidence: Mapping[str, tuple[Words, Span | None]] = field(default_factory=dict)


def link_together(
    source: Side, target: Side, links: Sequence[tuple[str, str]], wishes: LinkOptions, explained: bool
) -> Together:
    """Link the texts of `source` that are in none of the known `links` to documents of `target`.

    `explained`: whether the evidence is wanted, which takes milliseconds per text. Raises InputError if nothing is left
    to link, or an option needs more known links than there are.
    """
    if wishes.links not in KINDS:
        raise InputError(
            f"`links` {wishes.links} is not for two collections in one language: choose one-to-one or many-to-one"
        )
    if wishes.precision is not None and len({a for a, _ in links}) < FEWEST_HELD:
        raise InputError(
            f"`precision` tests its threshold on known links: pass at least {FEWEST_HELD} (`train`), or use "
            "`min_probability`"
        )
    linked = {one for one, _ in links}
    left = [id_ for id_ in source.documents if id_ not in linked]
    if not left:
        raise InputError("the known links cover every text: none is left to link")
    with open_index(target, source, wishes.encoder) as engine:
        share = wishes.expected_linked
        ranking = engine.collection.ranking()
        lists, known, about = candidate_lists(engine, source, left, links, wishes.seed, share, ranking)
        decision = decide(lists, known, KINDS[wishes.links], wishes.seed, share)
        answer = _result(engine, source, target, left, lists, decision, about, wishes, ranking.rows.ids)
        return replace(answer, evidence=_evidence(engine, source, answer.proposed)) if explained else answer


@contextlib.contextmanager
def open_index(target: Side, source: Side, encoder: str | None) -> Iterator[Engine]:
    """Yield the target's index; without one, build it in a temporary directory."""
    if target.engine is not None:
        if encoder and not target.engine.collection.manifest.embeds:
            logger.warning("%s has no vectors: `encoder` %s is not used", target.name, encoder)
        yield target.engine
        return
    name = analysis_of(source, target)
    with tempfile.TemporaryDirectory(prefix="linker-") as folder:
        directory = Path(folder) / "index"
        create(directory, encoder=encoder or "none", language=name, positions=True)
        logger.info("indexing %s (language of the stemmer: %s)", target.name, name)
        with Engine.open(directory) as engine:
            engine.add(target.documents.values())
            yield engine


def candidate_lists(
    engine: Engine,
    source: Side,
    left: Sequence[str],
    links: Sequence[tuple[str, str]],
    seed: int,
    expected: float | None = None,
    ranking: HybridIndex | None = None,
) -> tuple[Lists, Known | None, dict[str, Any]]:
    """Return the lists of the texts to link, those of the known links, and the metadata on the ranker.

    `expected`: the share of the texts that have a document, if it is known; `ranking`: the index whose row numbers
    identify the documents.
    """
    linked = list(dict.fromkeys(one for one, _ in links))
    texts = [source.documents[id_].full_text for id_ in (*linked, *left)]
    ranker = engine.ranker
    embeds = engine.collection.manifest.embeds and engine.collection.manifest.encoder is not None
    embed = engine.embed if embeds and (ranker is None or ranker.encoder) else None
    if ranker is None and len(linked) < FEWEST:
        ranker = pooled.load()
    ranking = ranking or engine.collection.ranking()
    documents = ranking.rows.locate([other for _, other in links])
    position = {id_: number for number, id_ in enumerate(linked)}
    pairs = np.stack([np.array([position[one] for one, _ in links], np.int64), documents], axis=1)
    settings = ranker.pool if ranker else deep_enough(ranking, texts[: len(linked)], pairs, SETTINGS)
    pool = _gather(Gatherer(engine.collection, settings, embed, ranking), texts)
    split = len(linked)
    relevant = relevant_of(pool.rows[:split], pairs)
    training: Training | None = None
    if ranker is None:
        training = _train(pool.part(slice(split)), relevant, engine, settings, seed)
        ranker = training.ranker if training else pooled.load()
        if training is None:  # too few links, or no LightGBM
            pool = _gather(Gatherer(engine.collection, ranker.pool, embed, ranking), texts)
            relevant = relevant_of(pool.rows[:split], pairs)
    ranker = ranker.for_size_of(engine.collection)
    about: dict[str, Any] = {
        "ranker": ranker.fingerprint or "trained on the known links",
        "candidates": int(pool.rows.shape[1]),
    }
    lists = _score(ranker, pool.part(slice(split, None)))
    if split < FEWEST_HELD:
        about |= _share_record(expected or ranker.calibration.share(lists.none), expected)
        lists = replace(lists, none=ranker.calibration.together(lists.none, expected))
    if not split:
        return lists, None, about
    some = pool.part(slice(split))
    scores, absent = (training.held, training.absent) if training else (None, None)
    ways = _score(ranker, some, scores), _score(ranker, some.without(relevant), absent)
    return lists, Known(ways[0], relevant, pairs, ways[1]), about


def _gather(gatherer: Gatherer, texts: Sequence[str]) -> Pool:
    from linker.scoring.ranking.learning import gather_batches

    with bar(len(texts), "finding candidates", "texts") as meter:
        return gather_batches(gatherer, texts, lambda _: meter.update(min(BATCH, len(texts) - meter.n)))


def _train(
    pool: Pool, relevant: BoolArray, engine: Engine, settings: PoolSettings, seed: int
) -> Training | None:
    """Return a ranker trained on known links with its scores out of fold, None if they are too few."""
    found = int(relevant.any(axis=1).sum())
    if found < FEWEST:
        return None
    record = engine.collection.manifest.encoder
    name = record.fingerprint if record and "cosine" in pool.names else ""
    try:
        with bar(None, "training the ranker", "steps") as meter:
            training = train(
                pool, relevant, settings, seed=seed, encoder=name, advance=lambda _: meter.update()
            )
    except MissingExtraError as e:
        logger.warning("%s; the ranker that comes with linker is used", e)
        return None
    logger.info(
        "a ranker learned from %s known links: MRR %.4f, first stage %.4f (cross-validated)",
        f"{found:,}", training.mrr, training.mrr_before,
    )  # fmt: skip
    return training


def _score(ranker: Ranker, pool: Pool, held: Float64Array | None = None) -> Lists:
    """Return the lists of a pool with the scores of a ranker, or with `held`, those of rankers not trained on it."""
    scores = ranker.scores(pool) if held is None else held
    finite = np.where(pool.valid, scores, 0)
    features = pool.features[:, :, [pool.names.index(name) for name in ranker.names]]
    _, none = ranker.calibration.probabilities(finite, pool.valid, features, ranker.names)
    logits = np.where(pool.valid, ranker.calibration.slope * finite, -np.inf)
    if "cosine" in pool.names and "cosine" not in ranker.names:  # the shipped ranker uses only words
        logits += zscores(pool.features[:, :, pool.names.index("cosine")], pool.valid)
    return Lists(pool.rows, logits, none)


def _result(
    engine: Engine,
    source: Side,
    target: Side,
    left: Sequence[str],
    lists: Lists,
    decision: Decision,
    about: Mapping[str, Any],
    wishes: LinkOptions,
    ids: Sequence[str],
) -> Together:
    candidates = rank(lists, decision, left, ids)
    threshold, promised = least_probability(
        wishes.min_probability, wishes.precision, (decision.held, decision.right)
    )
    first = candidates.scores[:, 0]
    proposed = [
        (id_, ids[row], float(p))
        for id_, row, p in zip(left, candidates.targets[:, 0].tolist(), first.tolist(), strict=True)
        if row >= 0
    ]
    run: dict[str, dict[str, float]] = {}
    for id_, rows, scores in zip(left, candidates.targets, candidates.scores, strict=True):
        if rows[0] >= 0 and scores[0] >= threshold:
            best = zip(rows[: wishes.k].tolist(), scores[: wishes.k].tolist(), strict=True)
            run[id_] = {ids[row]: score for row, score in best if row >= 0}
    choice = decision.choice
    metadata = {
        "method": "auto",
        "languages": [source.code, target.code],
        "texts": [len(source.documents), len(target.documents)],
        "links": len(source.documents) - len(left),
        "competition": choice.kind,
        "capacity": dataclasses.asdict(choice.capacity),
        "competition_leads": {kind: list(lead) for kind, lead in choice.leads.items()},
        **about,
        "min_probability": wishes.min_probability,
        **promised,
        **_share_record(decision.share, wishes.expected_linked),
        "transductive": choice.kind != "none",
        "no_link": [id_ for id_ in left if id_ not in run],
    }
    share = metadata.get("linked_share", {}).get("estimated") if len(left) > 1 else None
    logger.info("%s", _summary(choice, share))
    return Together(
        run,
        {id_: float(p) for id_, p in zip(left, decision.none.tolist(), strict=True)},
        _copies(run, target),
        metadata,
        proposed,
    )


def _share_record(share: float | None, expected: float | None) -> dict[str, Any]:
    if share is None:
        return {}
    return {"linked_share": {"estimated" if expected is None else "expected": round(share, 4)}}


def rank(lists: Lists, decision: Decision, left: Sequence[str], ids: Sequence[str]) -> Candidates:
    """Return the candidates by P(link), ties in the ranker's order; one-to-one competition then assigns rank 1."""
    order = np.lexsort((-lists.scores, -decision.links), axis=1)
    rows = np.take_along_axis(lists.documents, order, 1)
    scores = np.take_along_axis(decision.links, order, 1).astype(np.float32)
    ranking = Candidates(rows, np.where(rows >= 0, scores, -np.inf).astype(np.float32))
    return one_to_one(ranking, left, ids)[0] if decision.choice.kind == "one-to-one" else ranking


def _summary(choice: Choice, share: float | None) -> str:
    leads = "; ".join(
        f"{kind} {lead:+.4f} [{low:+.4f}, {high:+.4f}]" for kind, (lead, low, high) in choice.leads.items()
    )
    how = f" (MRR of held-out links compared with none: {leads})" if leads else ""
    seem = "" if share is None else f"; {share:.0%} of the texts seem to have one (or give --expected-linked)"
    return f"competition for documents: {choice.kind}{how}{seem}"


def _evidence(
    engine: Engine, source: Side, proposed: Sequence[tuple[str, str, float]]
) -> dict[str, tuple[Words, Span | None]]:
    """Return the evidence for the link of each text with its first document."""
    found = {}
    for one, other, _ in proposed:
        text = engine.document(other).full_text
        shared = evidence(engine.collection, source.documents[one].full_text, text)
        found[one] = shared.words, shared.passage
    return found


def _copies(run: Mapping[str, Mapping[str, float]], target: Side) -> dict[str, list[str]]:
    """Return the near copies of each text's first document among its other documents."""
    found = {}
    for id_, of in run.items():
        names = list(of)
        group = fold([target.documents[name].full_text for name in names])[0]
        if group.copies:
            found[id_] = [names[i] for i in group.copies]
    return found
