"""Read judgements for tuning or training from several files, in which lines may repeat."""

from collections.abc import Callable, Iterable, Sequence

from linker.base.errors import InputError
from linker.base.logs import logger
from linker.evaluation.reading.columns import PathLike
from linker.evaluation.reading.entries import Entries, repeats_text
from linker.evaluation.reading.trec import read_qrels


def merged_qrels(
    paths: Iterable[PathLike], warn: Callable[[str], None] = logger.warning
) -> dict[str, dict[str, int]]:
    """Return the judgements of all files, topic → document → relevance.

    A judgement that repeats another with the same relevance, in its file or an earlier one, is dropped; for each
    file, `warn` gets a message that names both lines and counts them. Raises InputError naming both lines if the
    relevance differs, and the errors of `read_qrels`.
    """
    merged: dict[str, dict[str, int]] = {}
    files: list[Entries[int]] = []
    for path in paths:
        entries = read_qrels(path, warn=warn)
        repeats = []
        for topic, judged in entries.items():
            known = merged.setdefault(topic, {})
            both = [document for document in judged if document in known]
            for document in both:
                if known[document] != judged[document]:
                    raise InputError(
                        f"{entries.place(topic, document)}: document {document!r} of topic {topic!r} has relevance "
                        f"{judged[document]}, but {known[document]} in {_first_place(files, topic, document)}: "
                        "delete the line that is wrong"
                    )
            repeats += [(topic, document) for document in both]
            known.update(judged)
        if repeats:
            places = entries.place(*repeats[0]), _first_place(files, *repeats[0])
            warn(repeats_text(*places, *repeats[0], len(repeats)))
        files.append(entries)
    return merged


def _first_place(files: Sequence[Entries[int]], topic: str, document: str) -> str:
    """Return "file:line" of a pair's first judgement in these files, at least one of which judges it."""
    return next(e for e in files if document in e.get(topic, {})).place(topic, document)
