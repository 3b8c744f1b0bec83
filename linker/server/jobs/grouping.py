"""The groups of a corpus: of an index, or of texts that were sent."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from linker.base.progress import Progress
from linker.cli.commands.grouping import group
from linker.server.jobs.linking import lines, side_of, written


def run(spec: Mapping[str, Any], tell: Progress) -> dict[str, Any]:
    """Group the documents of `spec["corpus"]` as `linker group` does.

    Raises InputError where an option lacks what it needs, IndexesError where an index cannot be read.
    """
    verdicts = {"relevant": spec["same"], "not": spec["different"]}
    judged = [
        {"seed": a, "id": b, "verdict": verdict} for verdict, pairs in verdicts.items() for a, b in pairs
    ]
    with tempfile.TemporaryDirectory(prefix="linker-") as folder:
        corpus = side_of(spec, "corpus", Path(folder) / "corpus.jsonl")
        train = [written(Path(folder) / "judged.jsonl", lines(judged))] if judged else []
        found = group(corpus, train=train, days=spec["days"], precision=spec["precision"], progress=tell)
    return {
        "members": [dataclasses.asdict(member) for member in found.members],
        "groups": [dataclasses.asdict(group) for group in found.groups],
        "promise": dataclasses.asdict(found.promise) if found.promise else None,
    }
