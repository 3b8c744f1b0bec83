"""The table of the case study in docs/published.md; benchmarks/report/readme.py renders it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def case_study(results: Any) -> Iterator[str]:
    """One row per article: what is accepted, how many posts are read until N links, the first posts, and words."""
    rows = results["rows"]
    until = list(dict.fromkeys(n for row in rows for n in row["until"]))
    accepted = f"cosine ≥ {results['accepted']}: posts, linked"
    yield (
        f"| words of the article's attention | words of the posts' attention | linked | {accepted} | "
        f"{' | '.join(f'read until {n}' for n in until)} | first posts |"
    )
    yield "|---" * (5 + len(until)) + "|"
    for row in rows:
        read = [f"{row['until'][n]:g}" if n in row["until"] else "" for n in until]
        words = [", ".join(_code(word) for word in row[key]) for key in ("words", "words of posts")]
        first = "".join("●" if linked else "○" for linked in row["first"])
        yield (
            f"| {' | '.join(words)} | {row['linked']} of {row['posts']} | {row['accepted']}, {row['right']} | "
            f"{' | '.join(read)} | {first} |"
        )


def _code(word: str) -> str:
    return f"`{word}`"
