"""Checks before a judgement is stored: each error says what is wrong and what to do."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from indexes.errors import Reason
from linker.base.errors import InputError
from linker.review.agreement import CONSENSUS
from linker.review.interface import VERDICTS, Candidate, Seed
from linker.review.population import Population


def with_seed(
    candidate: Candidate, seeds: Sequence[Seed], unit: str, beside: Callable[[str], Candidate]
) -> Candidate:
    """Return a candidate with its seed; without one, it gets the most similar seed of a topic, or the only seed.

    Raises InputError if the review does not have this seed, or if the seed has to be chosen.
    """
    if candidate.seed in {seed.id for seed in seeds}:
        return candidate
    if candidate.seed:
        raise _no_seed(candidate.seed)
    if unit == "topic" or len(seeds) == 1:
        return replace(candidate, seed=beside(candidate.id).seed)
    raise InputError(
        "this review has several seeds: name the one to which the document belongs"
        if seeds
        else "this review has no seed to which the document could belong: add one first"
    )


def check(candidate: Candidate, verdict: str, reviewer: str, population: Population) -> None:
    """Raise InputError if a judgement cannot be stored."""
    _check_verdict(verdict, reviewer)
    if not population.knows(candidate.id):
        raise InputError(Reason(f"{candidate.id!r} is not in the index: nothing was stored", "gone"))
    if (candidate.seed, candidate.id) not in population:
        text = f"{candidate.id!r} is a seed itself, or the review's filter leaves it out: nothing was stored"
        raise InputError(Reason(text, "is-seed"))


def check_row(seed: str, verdict: str, reviewer: str, seeds: Sequence[Seed]) -> None:
    """Raise InputError if a judgement of a seed as a whole cannot be stored."""
    _check_verdict(verdict, reviewer)
    if seed not in {known.id for known in seeds}:
        raise _no_seed(seed)


def _no_seed(seed: str) -> InputError:
    return InputError(
        Reason(f"this review has no seed {seed!r}: nothing was stored; load the page again", "gone")
    )


def _check_verdict(verdict: str, reviewer: str) -> None:
    if verdict not in VERDICTS:
        raise InputError(f"unknown verdict {verdict!r}: choose one of {', '.join(VERDICTS)}")
    if reviewer == CONSENSUS:
        raise InputError(
            f"{CONSENSUS!r} is the name under which conflicts are decided: judge under another one"
        )
