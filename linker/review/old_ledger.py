"""Import ledgers of earlier versions, one JSON object per line; the file itself stays as it is."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import orjson

from linker.errors import InputError
from linker.files import read_bytes
from linker.review.interface import Judgement, Verdict
from linker.review.ledger import Ledger

BEGINNING = b'{"seed":'  # of an old ledger's first entry
FIELDS = {"seed": str, "id": str, "relevance": int, "score": float | int}


def import_jsonl(path: Path, ledger: Ledger, reviewer: str = "") -> tuple[int, int]:
    """Add the judgements of an old ledger that were not undone, all or none; return how many, and how many it held.

    A relevance above 0 becomes "relevant", any other "not"; times are kept. The last line may be one that a crash
    left incomplete. Raises InputError naming file and line of any other that is no judgement.
    """
    present = {entry.judgement for entry in ledger.history()}
    timeless = {dataclasses.replace(j, time="") for j in present}
    given = _read(path, reviewer)
    missing = [j for j in given if j not in (present if j.time else timeless)]
    ledger.add_all(missing)
    return len(missing), len(given) - len(missing)


def _read(path: Path, reviewer: str) -> list[Judgement]:
    given: list[Judgement] = []
    *lines, tail = read_bytes(path).split(b"\n")
    if not tail and lines and b"\0" in lines[-1]:  # its end reached the disk before its beginning
        tail = lines.pop()
    for number, line in enumerate(lines, start=1):
        if not _take(line, reviewer, given):
            raise InputError(f"{path}:{number}: not a judgement: correct the line, or import another file")
    if tail and not _take(tail, reviewer, given) and not lines and not _is_incomplete(tail):
        raise InputError(f"{path}:1: not a judgement: import another file")
    return given


def _take(line: bytes, reviewer: str, given: list[Judgement]) -> bool:
    """Apply one entry; return whether the line is one."""
    try:
        entry: dict[str, Any] = orjson.loads(line)
        if entry.get("undo"):
            given.pop()
            return True
        if not all(isinstance(entry[name], kind) for name, kind in FIELDS.items()):
            return False
    except (orjson.JSONDecodeError, KeyError, AttributeError, IndexError):
        return False
    verdict: Verdict = "relevant" if entry["relevance"] > 0 else "not"
    time, score = str(entry.get("time") or ""), float(entry["score"])
    given.append(Judgement(entry["seed"], entry["id"], verdict, reviewer, score=score, time=time))
    return True


def _is_incomplete(first: bytes) -> bool:
    """Return whether a file's only line may be an entry cut by a crash: nothing else is ever cut off.

    Blocks that did not reach the disk are zeros, so an entry then lacks its beginning, its end, or both.
    """
    written = first.strip(b"\0")
    if not first.startswith(b"\0"):
        return written.startswith(BEGINNING) or BEGINNING.startswith(written)
    return not written or (written.endswith(b"}") and b"\0" not in written and written.isascii())
