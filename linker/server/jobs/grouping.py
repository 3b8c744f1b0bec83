"""The job `group`: group the documents of an index, or texts in the request, by story."""

import dataclasses
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from indexes.interface import Document, filter_values
from linker.base.progress import Progress, listening
from linker.corpora.languages import CODES, guess_language
from linker.crosslingual.regrouping import regroup
from linker.crosslingual.sides import judged_between, side_of
from linker.engine.groups import Groups
from linker.review.grouped import Grouped, Item, Story, save
from linker.server.jobs.linking import path_of

# Lower-case names of fields for a document's language and source; if the source is an address, its host is used.
LANGUAGE = ("language", "lang")
SOURCE = ("source", "publisher", "outlet", "site", "domain", "channel", "author", "user", "account")
ADDRESS = ("url", "link", "uri")


def run(spec: Mapping[str, Any], tell: Progress) -> dict[str, Any]:
    """Group the documents of `spec["corpus"]` as `linker group` does.

    With `spec["out"]`, the groups are written to this file for the page, with a group of one for each document in
    `spec["keep"]` that is in no other.
    Raises InputError if an option lacks a required input, IndexesError if an index cannot be read.
    """
    judged = {
        (one.strip(), other.strip()): is_same
        for name, is_same in (("same", True), ("different", False))
        for one, other in spec[name]
    }
    with tempfile.TemporaryDirectory(prefix="linker-") as temporary, listening(tell):
        corpus = side_of(path_of(spec, "corpus", Path(temporary) / "corpus.jsonl"), None, None)
        known = judged_between("same, different", judged, corpus.documents) if judged else {}
        out = Path(spec["out"]) if "out" in spec else None
        groups = regroup(corpus, known, days=spec["days"], precision=spec["precision"], next_to=out).groups
    if out and corpus.engine:
        generation = corpus.engine.collection.manifest.generation
        stories = stories_of(groups, corpus.documents, frozenset(spec["keep"]))
        made = Grouped(generation, len(groups.members), uuid4().hex, stories, groups.strata)
        save(out, made)
        return {"groups": len(groups)}
    return {
        "members": [dataclasses.asdict(member) for member in groups.members],
        "groups": [dataclasses.asdict(group) for group in groups.groups],
        "promise": dataclasses.asdict(groups.promise) if groups.promise else None,
    }


def stories_of(groups: Groups, documents: Mapping[str, Document], keep: Collection[str]) -> tuple[Story, ...]:
    """Return the groups as the page stores them, and each single document in `keep` as a separate group."""
    member = {m.id: m for m in groups.members}

    def item(id_: str) -> Item:
        m, document = member[id_], documents[id_]
        return Item(id_, m.probability, m.near_copy_of, m.date or "", _language(document), _source(document))

    stories = [
        Story(
            g.number, g.title, g.representative, g.probability, g.words, g.weakest, g.leaving, tuple(map(item, g.ids))
        )
        for g in groups.groups
    ]  # fmt: skip
    inside = {id_ for g in groups.groups for id_ in g.ids}
    alone = (m for m in groups.members if m.id in keep and m.id not in inside)
    return (*stories, *(Story(m.group, "", m.id, None, (), None, (), (item(m.id),)) for m in alone))


def _language(document: Document) -> str:
    if said := _field(document, LANGUAGE):
        return said[:12].lower()
    return CODES.get(guess_language([document.full_text]) or "", "")


def _source(document: Document) -> str:
    if said := _field(document, SOURCE):
        return said[:60]
    try:
        host = urlsplit(_field(document, ADDRESS)).hostname or ""
    except ValueError:  # for example, an incomplete IPv6 address
        return ""
    return host.removeprefix("www.")[:60]


def _field(document: Document, names: Collection[str]) -> str:
    """Return the first value of the first of these fields that the document has, on one line."""
    values = {name.lower(): filter_values(value) for name, value in document.metadata.items()}
    return next((" ".join(values[name][0].split()) for name in names if values.get(name)), "")
