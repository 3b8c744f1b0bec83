"""The groups of a corpus: of an index, or of texts that were sent."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from linker.base.progress import Progress, listening
from linker.crosslingual.sides import judged_between, side_of
from linker.crosslingual.together import indexed
from linker.server.jobs.linking import given


def run(spec: Mapping[str, Any], tell: Progress) -> dict[str, Any]:
    """Group the documents of `spec["corpus"]` as `linker group` does.

    Raises InputError where an option lacks what it needs, IndexesError where an index cannot be read.
    """
    judged = {
        (one.strip(), other.strip()): together
        for name, together in (("same", True), ("different", False))
        for one, other in spec[name]
    }
    with tempfile.TemporaryDirectory(prefix="linker-") as folder, listening(tell):
        corpus = side_of(given(spec, "corpus", Path(folder) / "corpus.jsonl"), None, None)
        known = judged_between("same, different", judged, corpus.documents) if judged else {}
        with indexed(corpus, corpus, None) as engine:
            found = engine.group(known, days=spec["days"], precision=spec["precision"])
    return {
        "members": [dataclasses.asdict(member) for member in found.members],
        "groups": [dataclasses.asdict(group) for group in found.groups],
        "promise": dataclasses.asdict(found.promise) if found.promise else None,
    }
