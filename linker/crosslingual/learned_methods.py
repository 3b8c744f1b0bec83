"""The learned methods, `auto` and `cascade`: they return links with probabilities."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from indexes.dtypes import Float32Array, Float64Array, Int64Array
from linker.base.errors import InputError
from linker.base.logs import logger
from linker.base.progress import bar
from linker.crosslingual.cardinality import cardinality_of, chances, choose_links, lists_several
from linker.crosslingual.model_linking import encoder_of, layout_of, model_of_pair, with_lessons, with_model
from linker.crosslingual.ranking.auto import Solution, solve
from linker.crosslingual.ranking.cascade import CascadeEvidence
from linker.crosslingual.ranking.copies import groups_of
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.explain import Explainer
from linker.crosslingual.ranking.folds import divisions_of
from linker.crosslingual.ranking.knowledge import Knowledge
from linker.crosslingual.ranking.self_training import ALONE, SURE, self_train
from linker.crosslingual.scoring.candidates import Candidates, hashes, rank
from linker.crosslingual.scoring.dense import encode_pages
from linker.crosslingual.scoring.stages import Stages
from linker.crosslingual.task import LinkingResult, Task, encode_both
from linker.engine.evidence import Span
from linker.scoring.ranking.fitting import FEWEST

NOTHING_GIVEN = "no `dictionary`, `train` or `encoder`: linking by shared strings"
SELF_TRAINING = "learning from the surest links, as long as it helps (--no-self-train leaves this step out)"
# By default, a task that has links, a dictionary or an encoder self-trains only below this number of page pairs.
LARGE = 1 << 27
KEPT = 20  # candidates per source page in the result
# Why the answer for one unlinked page depends on the other unlinked pages.
FROM_OTHERS = ("word frequencies", "statistics of scores", "competition for targets")


def by_auto(task: Task) -> LinkingResult:
    """Link by a ranker learned over all available evidence, with calibrated probabilities.

    The source pages of the training links get no answer. A task without a dictionary, links or an encoder starts from
    strings that the languages share. Self-training refines it, and other tasks (`_self_trains`), if its test shows a
    gain.
    """
    return with_model(task, "auto", _auto)


def _auto(task: Task) -> LinkingResult:
    evidence = _evidence(task)
    options = task.options
    if not _has_evidence(task):
        logger.info("%s", NOTHING_GIVEN)
    first = answer = _solve(task, evidence)
    about = _transductive()
    if _self_trains(task) if options.self_train is None else options.self_train:
        logger.info("%s", SELF_TRAINING)
        answer, rounds = self_train(
            evidence,
            task.train,
            first,
            seed=options.seed,
            expected=options.expected_linked,
            least=SURE if _has_evidence(task) else ALONE,
        )
        about = _transductive("training") | {"self_training": rounds}
    result = _links(task, answer, evidence, {"evidence": _evidence_names(task), **about})
    # A model stores the given evidence, not what was learned among these pages, unless there is nothing else.
    lessons = answer if options.self_train or not _has_evidence(task) else first
    return with_lessons(result, task, "auto", evidence, lessons)


def by_cascade(task: Task) -> LinkingResult:
    """Link by AUT's cascade, calibrated like `by_auto`. Raises InputError if there are too few training links."""
    return with_model(task, "cascade", _cascade)


def _cascade(task: Task) -> LinkingResult:
    if not len(task.train) and not model_of_pair(task):
        raise InputError("the method 'cascade' learns from linked pages: pass `train` QRELS")
    evidence = _evidence(task, CascadeEvidence, learning=task.options.topics, seed=task.options.seed)
    answer = _solve(task, evidence)
    links = _links(task, answer, evidence, _transductive() | {"topics": task.options.topics})
    return with_lessons(links, task, "cascade", evidence, answer)


def _transductive(*more: str) -> dict[str, Any]:
    """Return the metadata on the use of unlinked pages: a page linked alone could get a different answer."""
    return {"transductive": True, "uses_unlinked_pages": [*FROM_OTHERS, *more]}


def _evidence(task: Task, kind: type[AllEvidence] = AllEvidence, **own: Any) -> AllEvidence:
    model, encoder = model_of_pair(task), encoder_of(task)
    pairs = [pair for dictionary in task.dictionaries for pair in dictionary.pairs]
    return kind(
        task.source,
        task.target,
        tuple(dict.fromkeys([*(model.pairs if model else ()), *pairs])),
        encode_both(task, encoder, encode_pages) if encoder else None,
        layout=layout_of(task),
        rankers=task.rankers,
        stages=Stages.beside(task.checkpoint),
        exclusive=cardinality_of(task, "auto").startswith("one"),
        memory=model.knowledge if model else Knowledge(),
        begun=replace(task.model.start, elsewhere=model is None) if task.model else None,
        **own,
    )


def _has_evidence(task: Task) -> bool:
    return bool(task.dictionaries or len(task.train) or task.encoder or model_of_pair(task))


def _self_trains(task: Task) -> bool:
    """Return whether a task self-trains by default: always if it has only its own pages to learn from.

    Otherwise, a model is applied unchanged, and a large task would take hours per round.
    """
    large = len(task.source) * len(task.target) >= LARGE
    return not _has_evidence(task) or not (task.model or large)


def _evidence_names(task: Task) -> list[str]:
    used = {
        "strings": True,
        "layout": layout_of(task),
        "dictionary": bool(task.dictionaries),
        "links": bool(len(task.train)),
        "encoder": bool(encoder_of(task)),
        "model": task.model is not None,
    }
    return [name for name, present in used.items() if present]


def _solve(task: Task, evidence: AllEvidence) -> Solution:
    if task.options.precision is not None and len(task.train) < FEWEST:
        raise InputError(
            f"`precision` tests its threshold on known links: pass at least {FEWEST} (`train` QRELS), or use "
            "`min_probability`"
        )
    linked = len(np.unique(task.train[:, 0]))
    times = divisions_of(task.train) if len(task.train) >= FEWEST else 0
    with bar(len(task.source) + linked * (times - 1), "learning and linking", "candidate lists") as meter:
        return solve(
            evidence,
            task.train,
            seed=task.options.seed,
            expected=task.options.expected_linked,
            advance=meter.update,
        )


def _links(task: Task, answer: Solution, evidence: AllEvidence, about: dict[str, Any]) -> LinkingResult:
    wishes = task.options
    threshold, thresholds = answer.fitted.least_probability(
        wishes.min_probability, wishes.precision, wishes.expected_linked
    )
    cardinality = cardinality_of(task, "auto")
    ranking = _candidates(task, answer, chances(answer, cardinality))
    candidates, confidence = choose_links(ranking, cardinality, task.source, task.target)
    groups = _groups(task, candidates, answer, evidence)
    # A copy, because links below the threshold are removed from the candidates.
    first = candidates.targets[:, 0].copy()
    proposed = [
        (task.source.ids[row], task.target.ids[first[row]], float(confidence[row]))
        for row in np.flatnonzero(first >= 0).tolist()
    ]
    unsure = confidence < threshold
    hidden = np.broadcast_to(unsure[:, None], candidates.targets.shape)
    if lists_several(cardinality):
        hidden = candidates.scores < threshold
    candidates.targets[hidden] = -1
    candidates.scores[hidden] = -np.inf
    metadata = {
        "learned_word_pairs": int(answer.learned.induced.nnz),
        "candidate_recall": None if answer.recall is None else round(answer.recall, 4),
        **thresholds,
        "contradicted_links": [task.source.ids[row] for row in answer.fitted.contradicted.tolist()],
        "no_link": [task.source.ids[row] for row in answer.lists.rows.tolist() if unsure[row]],
        "near_copies": {task.source.ids[row]: group for row, group in groups.items()},
        **about,
    }
    explainer = Explainer(evidence, answer.learned.induced)
    explanations = (
        _explanations(task, candidates, first, confidence, groups, answer, explainer)
        if task.options.explain
        else None
    )

    def passage(id_: str) -> Span | None:
        row = task.source.position[id_]
        return explainer.passage(row, int(first[row]))

    return LinkingResult(candidates, metadata, explanations, proposed, passage=passage)


def _groups(
    task: Task, candidates: Candidates, answer: Solution, evidence: AllEvidence
) -> dict[int, dict[str, Any]]:
    """Return the near copies of the best targets and their joint probability, by source row, as records."""
    first = candidates.targets[answer.lists.rows, 0]
    found = groups_of(evidence.target_terms.present, answer.lists, answer.fitted, first)
    return {
        row: {"group": [task.target.ids[t] for t in group.targets], "group_probability": group.probability}
        for row, group in found.items()
    }


def _candidates(task: Task, answer: Solution, probabilities: Float64Array) -> Candidates:
    """Rank by probability (float64 [n, c]); ties are broken by a hash of the contents."""
    lists = answer.lists
    rows = np.repeat(lists.rows, lists.targets.shape[1])
    n, (source, target) = len(task.source), (hashes(pages.keys) for pages in (task.source, task.target))
    return rank(
        rows, lists.targets.ravel(), probabilities.astype(np.float32).ravel(), n, KEPT, source, target
    )


def _explanations(
    task: Task,
    candidates: Candidates,
    first: Int64Array,
    confidence: Float32Array,
    groups: Mapping[int, Mapping[str, Any]],
    answer: Solution,
    explainer: Explainer,
) -> Iterator[dict[str, Any]]:
    """Yield one record per unlinked page: its link or null, the probabilities, near copies, and matches.

    `first` [n]: the best target of each page. If its probability is below the threshold, it is the `candidate`.
    """
    none = dict(zip(answer.lists.rows.tolist(), answer.probabilities[:, -1].tolist(), strict=True))
    for row in answer.lists.rows.tolist():
        column = int(first[row])
        record: dict[str, Any] = {"id": task.source.ids[row], "link": None, "no_link_probability": none[row]}
        if column >= 0:
            linked = candidates.targets[row, 0] >= 0
            record["link" if linked else "candidate"] = task.target.ids[column]
            record["probability"] = float(confidence[row])
            matches = explainer.matches(row, column)
            record["matches"] = [[m.source, m.target, m.kind, m.weight] for m in matches]
        yield record | dict(groups.get(row, {}))
