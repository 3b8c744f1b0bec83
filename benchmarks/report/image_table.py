"""The size of the image, for docs/deploying.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def image(results: Any) -> Iterator[str]:
    """What the environment takes, and its largest packages."""
    size, base = results["environment_mb"], results["base_mb_at_most"]
    yield f"| part of the image | MB |\n|---|---|\n| **environment, all of it** | {size:.0f} |"
    for name, megabytes in results["largest_mb"].items():
        yield f"| of which `{name}` | {megabytes:.0f} |"
    yield f"| base image, rounded up, not measured | {base} |"
