"""JSON as ranx and pytrec_eval use it, topic → document → number, and JSON lines as `linker search --json` prints."""

from __future__ import annotations

import json
from typing import Any

from linker.base.errors import InputError

Nested = dict[str, dict[str, Any]]


def read(data: bytes) -> Nested:
    """Return topic → document → number from JSON, or from JSON lines with `query`, `ids` and `scores`.

    Raises InputError if it is neither, a topic or document repeats, or ids and scores differ in number.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise InputError(f"not UTF-8 text (byte {e.start})") from None
    first, _, rest = text.strip().partition("\n")
    if rest.lstrip().startswith("{") or _is_line(first):
        return _of_lines(text)
    return _checked(_parsed(text))


def _is_line(line: str) -> bool:
    """Return whether a line is a complete object as in JSON lines."""
    try:
        value = _parsed(line)
    except InputError:
        return False
    return isinstance(value, dict) and isinstance(value.get("ids"), list)


def _parsed(text: str, where: str = "") -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{where}{twice!r} occurs twice in one object: JSON would keep only the last")
        return value

    try:
        return json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as e:
        raise InputError(f"{where}not JSON: {e}") from None


def _checked(value: Any) -> Nested:
    if not isinstance(value, dict):
        raise InputError('not an object {"topic": {"document": number}}, as ranx and pytrec_eval write it')
    for topic, documents in value.items():
        if not isinstance(documents, dict):
            raise InputError(f'topic {topic!r} is not an object {{"document": number}}')
        for id_, number in documents.items():
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise InputError(f"topic {topic!r}, document {id_!r}: {number!r} is not a number")
    return value


def _of_lines(text: str) -> Nested:
    nested: Nested = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        value = _parsed(line, f"line {number}: ")
        query, ids, scores = (
            (value.get(n) for n in ("query", "ids", "scores")) if isinstance(value, dict) else (None,) * 3
        )
        if not (isinstance(query, str) and isinstance(ids, list) and isinstance(scores, list)):
            raise InputError(f"line {number}: no object with query, ids and scores")
        if query in nested or len(ids) != len(scores) or len(set(map(str, ids))) != len(ids):
            raise InputError(
                f"line {number}: query {query!r} or one of its ids repeats, or the scores are missing"
            )
        nested[query] = dict(zip(ids, scores, strict=True))
    return _checked(nested)
