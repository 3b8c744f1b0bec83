"""The learned methods, `auto` and `cascade`: they return links with probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from indexes.dtypes import Float32Array
from linker.crosslingual.ranking.auto import Solution, solve
from linker.crosslingual.ranking.cascade import CascadeEvidence
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.explain import Explainer
from linker.crosslingual.ranking.knowledge import Knowledge
from linker.crosslingual.ranking.learning import Evidence
from linker.crosslingual.ranking.pooled import Pooled
from linker.crosslingual.ranking.saved import LinkModel
from linker.crosslingual.ranking.self_training import self_train
from linker.crosslingual.remembered import with_model
from linker.crosslingual.scoring.assignment import greedy, promote
from linker.crosslingual.scoring.candidates import Candidates, hashes, rank
from linker.crosslingual.task import LinkingResult, Task, encoded
from linker.errors import InputError
from linker.progress import bar

KEPT = 20  # candidates per source page in the result


def by_auto(task: Task) -> LinkingResult:
    """Link by a ranker learned over all available evidence, with calibrated probabilities.

    The source pages of the training links get no answer. Raises InputError where the task has no dictionary, no links
    and no encoder.
    """
    return with_model(task, "auto", _auto)


def _auto(task: Task) -> LinkingResult:
    evidence = _evidence(task)
    answer = _solved(task, evidence)
    about: dict[str, Any] = {"transductive": False}
    if task.options.self_train:
        answer, rounds = self_train(evidence, task.train, answer, seed=task.options.seed)
        about = {"transductive": True, "self_training": rounds}
    return _keeping(_links(task, answer, evidence, about), task, "auto", evidence, answer)


def by_cascade(task: Task) -> LinkingResult:
    """Link by AUT's cascade, calibrated as `by_auto` is. Raises InputError where there are too few training links."""
    return with_model(task, "cascade", _cascade)


def _cascade(task: Task) -> LinkingResult:
    if not len(task.train) and not _same(task):
        raise InputError("the method 'cascade' learns from linked pages: pass --train QRELS")
    everything = _evidence(task)
    evidence = CascadeEvidence(everything)
    answer = _solved(task, evidence)
    return _keeping(_links(task, answer, everything, {}), task, "cascade", evidence, answer)


def _same(task: Task) -> LinkModel | None:
    """Return the task's model if it is of the same languages."""
    same = task.model and task.model.links(task.source.language, task.target.language)
    return task.model if same else None


def _keeping(
    result: LinkingResult, task: Task, method: str, evidence: AllEvidence | CascadeEvidence, answer: Solution
) -> LinkingResult:
    """Return the result with a function that makes what was learned a model."""

    def model() -> LinkModel:
        links = np.concatenate([task.train, answer.extra])
        knowledge = evidence.study(links, answer.learned.induced)
        everything = evidence if isinstance(evidence, AllEvidence) else evidence.all
        about = {
            "links": len(knowledge.links),
            "word pairs": len(knowledge.words),
            "pairs of dictionaries": len(everything.pairs),
            "pages": f"{len(task.source)} and {len(task.target)}",
        }
        return LinkModel(
            method,
            (task.source.language, task.target.language),
            Pooled(answer.ranker, answer.platt),
            knowledge,
            everything.pairs,
            _encoder(task),
            about,
        )

    return replace(result, model=model)


def _encoder(task: Task) -> str | None:
    return task.encoder or (task.model.encoder if task.model else None)


def _evidence(task: Task) -> AllEvidence:
    same, encoder = _same(task), _encoder(task)
    if not (task.dictionaries or len(task.train) or encoder or same):
        raise InputError(
            "the method 'auto' needs something to start from: a --dictionary FILE, links (--train QRELS; "
            "100 to 200 are enough to start with), or an --encoder NAME"
        )
    pairs = [pair for dictionary in task.dictionaries for pair in dictionary.pairs]
    return AllEvidence(
        task.source,
        task.target,
        tuple(dict.fromkeys([*(same.pairs if same else ()), *pairs])),
        encoded(task, encoder) if encoder else None,
        memory=same.knowledge if same else Knowledge(),
        seed=task.options.seed,
        begun=task.model.start if task.model else None,
    )


def _solved(task: Task, evidence: Evidence) -> Solution:
    with bar(len(task.source), "learning and linking", "pages") as meter:
        return solve(evidence, task.train, seed=task.options.seed, advance=meter.update)


def _links(task: Task, answer: Solution, evidence: AllEvidence, about: dict[str, Any]) -> LinkingResult:
    ranking = _candidates(task, answer)
    candidates = promote(ranking, greedy(ranking, task.source.keys, task.target.keys))
    # A promoted target keeps its probability; those that it overtook are lowered to it.
    promoted = (ranking.targets == candidates.targets[:, :1]) & (ranking.targets >= 0)
    confidence = np.where(promoted, ranking.scores, 0).max(axis=1)
    np.minimum(candidates.scores, confidence[:, None], out=candidates.scores)
    unsure = confidence < task.options.min_probability
    candidates.targets[unsure] = -1
    candidates.scores[unsure] = -np.inf
    metadata = {
        "learned_word_pairs": int(answer.learned.induced.nnz),
        "min_probability": task.options.min_probability,
        "no_link": [task.source.ids[row] for row in answer.lists.rows.tolist() if unsure[row]],
        **about,
    }
    explanations = (
        _explanations(task, candidates, confidence, answer, evidence) if task.options.explain else None
    )
    return LinkingResult(candidates, metadata, explanations)


def _candidates(task: Task, answer: Solution) -> Candidates:
    """Rank by probability; ties are broken by a hash of the contents."""
    lists, probabilities = answer.lists, answer.probabilities[:, :-1].astype(np.float32)
    rows = np.repeat(lists.rows, lists.targets.shape[1])
    n, (source, target) = len(task.source), (hashes(pages.keys) for pages in (task.source, task.target))
    return rank(rows, lists.targets.ravel(), probabilities.ravel(), n, KEPT, source, target)


def _explanations(
    task: Task, candidates: Candidates, confidence: Float32Array, answer: Solution, evidence: AllEvidence
) -> Iterator[dict[str, Any]]:
    """Yield one record per unlinked page: its link or null, the probabilities, and what matched."""
    explainer = Explainer(evidence, answer.learned.induced)
    none = dict(zip(answer.lists.rows.tolist(), answer.probabilities[:, -1].tolist(), strict=True))
    for row in answer.lists.rows.tolist():
        column = int(candidates.targets[row, 0])
        record: dict[str, Any] = {"id": task.source.ids[row], "link": None, "no_link_probability": none[row]}
        if column >= 0:
            record["link"] = task.target.ids[column]
            record["probability"] = float(confidence[row])
            matches = explainer.matches(row, column)
            record["matches"] = [[m.source, m.target, m.kind, m.weight] for m in matches]
        yield record
