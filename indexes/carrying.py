"""Decide which segments are merged: small ones by the next commit, the others in the background.

Sizes are numbers of rows, postings or tokens, one per segment in row order; only neighbours are merged. A commit
absorbs the segments before it that are at most FACTOR times as large as its merged segment so far, up to
`MergeLimits.small`, so that it stays fast. Segments that no commit absorbs any more are merged by merging.py when there
are more than SETTLED of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

FACTOR, SETTLED, GROWTH = 8, 6, 4
CROWDED = 12  # if there are this many segments, a commit also merges larger ones, since the background cannot keep up


class MergeLimits(NamedTuple):
    """The maximum size of a merged segment, in rows, postings or tokens."""

    small: int  # when a commit merges
    built: int  # when a commit of a build merges: nobody reads the index yet
    most: int  # when the background thread merges


ROWS = MergeLimits(1 << 13, 1 << 16, 1 << 40)
POSTINGS = MergeLimits(1 << 19, 1 << 26, 1 << 26)
TOKENS = MergeLimits(1 << 20, 1 << 27, 1 << 27)


def left_alone(sizes: Sequence[int], new: int, limits: MergeLimits, *, building: bool = False) -> int:
    """Return how many of the first segments stay as they are when a commit adds a segment of size `new`.

    A build merges segments of similar size, as a binary counter carries: each row is copied O(log n) times.
    """
    factor, most = (1, limits.built) if building else (FACTOR, limits.small)
    if len(sizes) >= CROWDED and not building:
        most = FACTOR * limits.small
    count, total = len(sizes), new
    while count and sizes[count - 1] <= min(factor * total, most - total):
        count -= 1
        total += sizes[count]
    return count


def due(sizes: Sequence[int], limits: MergeLimits) -> slice:
    """Return the segments to merge in the background: at least two neighbours, or none (an empty slice).

    They are too large for a commit to absorb meanwhile. Of the segments before them, each is more than GROWTH times as
    large as the next.
    """
    settled = limits.small * FACTOR // (FACTOR + 1)
    end = next((n for n in range(len(sizes), 0, -1) if sizes[n - 1] > settled), 0)
    if end <= SETTLED:
        return slice(0, 0)
    begin = end - 1
    total = sizes[begin]
    while begin and total + sizes[begin - 1] <= limits.most:
        if begin < end - 1 and sizes[begin - 1] > GROWTH * total:
            break
        begin -= 1
        total += sizes[begin]
    return slice(begin, end) if end - begin > 1 else slice(0, 0)
