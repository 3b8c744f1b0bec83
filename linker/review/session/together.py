"""Judgements made together and undone together: on a document and its copies, or links accepted in bulk."""

from collections.abc import Sequence
from dataclasses import replace

from linker.review.interface import Judgement

COPY_OF = "copy of "  # tag of a judgement that was made together with the one on another document


def copied(judgement: Judgement, ids: Sequence[str]) -> list[Judgement]:
    """Return a judgement, and the same verdict on the copies of its document.

    The copies were not drawn: they count as found outside the queue, so that no audit treats them as random.
    """
    tags = (*judgement.tags, f"{COPY_OF}{judgement.id}")
    return [
        judgement,
        *(replace(judgement, id=id_, note="", tags=tags, phase="search") for id_ in dict.fromkeys(ids)),
    ]


def batch_size(judgements: Sequence[Judgement]) -> int:
    """Return how many of a reviewer's latest judgements were made in one go."""
    if judgements and judgements[-1].phase == "accepted":
        return sum(j.phase == "accepted" and j.time == judgements[-1].time for j in judgements)
    for count, judgement in enumerate(reversed(judgements), start=1):
        if count > 1 and all(
            f"{COPY_OF}{judgement.id}" in copy.tags for copy in judgements[len(judgements) - count + 1 :]
        ):
            return count
        if not any(tag.startswith(COPY_OF) for tag in judgement.tags):
            break
    return min(len(judgements), 1)


def original(judgement: Judgement) -> str:
    """Return the document that a judgement was made on: the original if its own document is a copy."""
    return next(
        (tag.removeprefix(COPY_OF) for tag in judgement.tags if tag.startswith(COPY_OF)), judgement.id
    )
