"""Linking with a saved model: it adds knowledge to a task, and links that it already knows are left out."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from indexes.dtypes import BoolArray, Int64Array
from linker.base.errors import InputError
from linker.base.logs import logger
from linker.crosslingual.pages.pages import UNKNOWN
from linker.crosslingual.ranking.auto import Solution
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.model import LinkModel
from linker.crosslingual.task import LinkingResult, Task

FEW = 100  # minimum number of pages; with fewer, scores are compared with too few others


@dataclass(frozen=True, eq=False)
class TaskPart:
    """A task without some of its pages: the remaining pages' rows in the whole task, int64 [n'] and [m']."""

    task: Task
    source: Int64Array
    target: Int64Array

    def whole(self, result: LinkingResult, n: int) -> LinkingResult:
        """Return the part's result in the rows of the whole task, which has `n` source pages."""
        return replace(result, candidates=result.candidates.place(n, self.source, self.target))


def with_model(task: Task, method: str, solve: Callable[[Task], LinkingResult]) -> LinkingResult:
    """Solve a task without the links that its model knows. Raises InputError if another method saved the model."""
    model = task.model
    if model is None:
        return solve(task)
    if model.method != method:
        raise InputError(
            f"`model` was saved by the method {model.method!r}, not {method!r}: pass `method` {model.method}"
        )
    if not model.links(task.source.language, task.target.language):
        languages = (task.source.language, task.target.language)
        ours, theirs = ("-".join(one.code for one in pair) for pair in (languages, model.languages))
        logger.info(
            f"the model links {theirs}, the pages are {ours}: training starts from its ranker and calibration, "
            "but its words and latent space are left out"
            + ("; if it is for them, name their `languages`" if UNKNOWN in ours.split("-") else "")
        )
        return solve(task)
    if len(task.source) < FEW:
        logger.warning(
            f"{len(task.source):,} pages are few: scores are compared with those of the run's other pages, so link "
            f"{FEW} or more at a time, or distrust the probabilities"
        )
    source, target = (
        replace(pages, language=replace(language, known=pages.language.known))
        for pages, language in zip((task.source, task.target), model.languages, strict=True)
    )
    task = replace(task, source=source, target=target)
    known, taken = model.knowledge.has(task.train, source, target), model.knowledge.taken(source, target)
    if not known.any() and not len(taken):
        return solve(task)
    logger.info(
        f"the model knows {known.sum():,} of the {len(known):,} links in `train`, which are not learned again, and "
        f"{len(taken):,} targets of pages that are not in this run, which are not linked to other pages"
    )
    part = _without(task, known, taken)
    return part.whole(solve(part.task), len(task.source))


def model_of_pair(task: Task) -> LinkModel | None:
    """Return the task's model if it links the task's languages."""
    same = task.model and task.model.links(task.source.language, task.target.language)
    return task.model if same else None


def encoder_of(task: Task) -> str | None:
    """Return the task's encoder, or the one that its model was learned with."""
    return task.encoder or (task.model.encoder if task.model else None)


def layout_of(task: Task) -> bool:
    """Return whether punctuation is evidence: as in the model, else the options. Raises InputError if they differ."""
    if task.model is None:
        return task.options.layout
    if task.model.layout and not task.options.layout:
        raise InputError(
            "the model uses punctuation and line breaks: leave `layout` out, or save another with it"
        )
    return task.model.layout


def with_lessons(
    result: LinkingResult, task: Task, method: str, evidence: AllEvidence, answer: Solution
) -> LinkingResult:
    """Return the result with a function that creates a model from what was learned."""

    def model() -> LinkModel:
        knowledge = evidence.study(np.concatenate([task.train, answer.extra]), answer.learned.induced)
        about = {
            "links": len(knowledge.links),
            "word pairs": len(knowledge.words),
            "pairs of dictionaries": len(evidence.pairs),
            "pages": f"{len(task.source):,} and {len(task.target):,}",
        }
        languages, layout = (task.source.language, task.target.language), layout_of(task)
        return LinkModel(
            method, languages, answer.fitted.model, knowledge, evidence.pairs, encoder_of(task), layout, about
        )

    return replace(result, model=model)


def _without(task: Task, known: BoolArray, taken: Int64Array) -> TaskPart:
    links = task.train[known]
    rows = np.setdiff1d(np.arange(len(task.source)), links[:, 0])
    columns = np.setdiff1d(np.arange(len(task.target)), np.concatenate([links[:, 1], taken]))
    if not len(rows) or not len(columns):
        raise InputError("the links that the model knows cover every page: no page is left to link")
    rest = task.train[~known]
    rest = rest[np.isin(rest[:, 0], rows) & np.isin(rest[:, 1], columns)]
    train = np.stack([np.searchsorted(rows, rest[:, 0]), np.searchsorted(columns, rest[:, 1])], axis=1)
    return TaskPart(
        replace(
            task, source=task.source.at(rows.tolist()), target=task.target.at(columns.tolist()), train=train
        ),
        rows,
        columns,
    )
