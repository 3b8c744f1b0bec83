"""Errors that the user can correct; the command line prints their text and exits with status 1."""

import re

from indexes.errors import DISTRIBUTION

# Module → the distribution that provides it, for modules that are named differently.
DISTRIBUTIONS = {
    "faiss": "faiss-cpu",
    "haystack": "haystack-ai",
    "mcp_types": "mcp",
    "onnx_ir": "onnxscript",
    "opensearchpy": "opensearch-py",
    "sklearn": "scikit-learn",
    "starlette": "fastapi",
}
OURS = ("bench", "dev", "docs", "peers")  # extras for linker's developers
REQUIREMENT = re.compile(r"([\w.-]+)[^;]*(?:;.*\bextra == [\"']([\w-]+)[\"'])?")


class LinkerError(Exception):
    """Base of every error of this package; its text names the problem, the place, and the remedy."""


class InputError(LinkerError):
    """A file or value given by the user is invalid; the message names the file and, if known, the line."""


class UsageError(InputError):
    """Options conflict, or one cannot be parsed; the command line exits with status 2."""


class ConfigError(LinkerError):
    """A configuration file or a `--set` value is invalid."""


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its representation if it has none."""
    return (str(error).strip() or repr(error)).splitlines()[0]


def requirements() -> dict[str, list[str]]:
    """Return the packages that each extra installs and, under "", those always installed; empty without metadata."""
    import importlib.metadata

    found: dict[str, list[str]] = {}
    try:
        lines = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return found
    for line in lines:
        name, extra = REQUIREMENT.match(line).groups("")  # type: ignore[union-attr] # every line begins with a name
        if name != DISTRIBUTION and extra not in OURS:
            found.setdefault(extra, []).append(name)
    return found


def extra_of(module: str) -> str | None:
    """Return the first extra that installs a module, or None if none does."""
    top = module.partition(".")[0]
    name = DISTRIBUTIONS.get(top, top.replace("_", "-"))
    return next((extra for extra, names in requirements().items() if extra and name in names), None)
