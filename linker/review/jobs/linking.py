"""The counterparts of pages in another language, of indexes or of texts that were sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from linker.crosslingual.lexicon.dictionaries import Dictionary
from linker.crosslingual.methods import link
from linker.crosslingual.pages.languages import language
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.runs import run_of
from linker.crosslingual.task import NO_LINKS, Options, Task
from linker.engine import Engine
from linker.errors import InputError
from linker.progress import Progress, listening


def run(spec: Mapping[str, Any], tell: Progress) -> dict[str, Any]:
    """Link `spec["source"]` to `spec["target"]` by `spec["method"]`, each page to at most `spec["k"]` others.

    Raises InputError where the method lacks something, IndexesError where an index cannot be read.
    """
    source, target = pages(spec["source"]), pages(spec["target"])
    pairs = tuple((a, b) for a, b in spec["dictionary"])
    task = Task(
        source,
        target,
        dictionaries=(Dictionary(Path("request"), "pairs", pairs),) if pairs else (),
        train=_links(spec["links"], source, target),
        encoder=spec["encoder"],
        one_to_one=spec["one_to_one"],
        options=Options(min_probability=spec["min_probability"], self_train=spec["self_train"]),
    )
    with listening(tell):
        candidates = link(task, spec["method"]).candidates.cut(spec["k"])
    run = run_of(source, target, candidates)
    return {
        "method": spec["method"],
        "languages": [source.language.code, target.language.code],
        "pages": [len(source), len(target)],
        "links": [
            {"source": id_, "targets": [{"id": other, "score": score} for other, score in targets.items()]}
            for id_, targets in run.items()
        ],
    }


def pages(side: Mapping[str, Any]) -> Pages:
    """Return the pages of one side: the documents of an index, those that its filter accepts, or those sent.

    Raises InputError where there is none, or an id repeats.
    """
    if side.get("index"):
        with Engine.open(Path(side["index"])) as engine:
            texts = {d.id: d.full_text for d in engine.documents(side["where"])}
    else:
        sent = side["documents"]
        texts = {d["id"]: f"{d['title']}\n{d['text']}" if d["title"] else d["text"] for d in sent}
        if len(texts) < len(sent):
            raise InputError("two documents of one side have the same id: ids must be unique")
    if not texts:
        raise InputError("one side has no documents: nothing can be linked")
    return Pages(tuple(texts), tuple(texts.values()), language(side["language"]))


def _links(pairs: Sequence[Sequence[str]], source: Pages, target: Pages) -> Any:
    found = [
        (source.position[a], target.position[b])
        for a, b in pairs
        if a in source.position and b in target.position
    ]
    if pairs and not found:
        raise InputError("none of the known links is between these documents: do the ids agree?")
    return np.array(found, np.int64) if found else NO_LINKS
