"""A tiny backbone and graded pairs of its words."""

import json
import random
from pathlib import Path

from linker.scoring.pairs.data import Pair
from tests.helpers import WORDS


def graded_pairs(count: int, seed: int = 0, length: int = 5) -> list[Pair]:
    """Sentences of random words whose similarity is the share of words they have in common."""
    rng = random.Random(seed)
    pairs = []
    for number in range(count):
        first = rng.sample(WORDS, length)
        shared = number % (length + 1)
        second = first[:shared] + rng.sample([w for w in WORDS if w not in first], length - shared)
        pairs.append(Pair(str(number), " ".join(first), " ".join(second), 5.0 * shared / length))
    return pairs


def write_pairs(path: Path, pairs: list[Pair]) -> Path:
    lines = (
        json.dumps({"_id": p.id, "text1": p.first, "text2": p.second, "score": p.gold}) + "\n" for p in pairs
    )
    path.write_text("".join(lines), encoding="utf-8")
    return path
