"""The words for verdicts."""

from __future__ import annotations

from linker.web.rendering import message

NAMES = {
    "relevant": message("relevant"),
    "not": message("not relevant"),
    "maybe": message("maybe"),
    "skip": message("skipped"),
    "mixed": message("reviewers disagree"),
}
