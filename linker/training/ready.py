"""Ready configurations: TOML files that come with the package, complete but for the data's paths."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from linker.errors import ConfigError

FOLDER = Path(__file__).parent / "configs"
PATHS = ("data.queries", "data.documents", "data.train")  # what no ready file can know


def names() -> list[str]:
    """Return the names of the ready configurations."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def text_of(name: str) -> str:
    """Return a ready file's content. Raises ConfigError naming the ready ones."""
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ConfigError(f"there is no ready configuration {name!r}: {hint}Ready are {', '.join(names())}")
    return (FOLDER / f"{name}.toml").read_text(encoding="utf-8")


def find(config: Path, overrides: Sequence[str]) -> Path:
    """Return the file that `linker train CONFIG` means: a file that exists, else the ready one of that name.

    Raises ConfigError when a bare name is neither, or when `overrides` lack a path that the ready one needs.
    """
    if config.is_file() or config.suffix or config.name != str(config):
        return config
    try:
        text_of(str(config))
    except ConfigError as e:
        raise ConfigError(f"cannot read {config}: no such file, and {e}") from None
    given = {text.partition("=")[0].strip() for text in overrides}
    missing = [f"--set {key}=PATH" for key in PATHS if not given & {key, "data"}]
    missing += ["--out MODEL"] if not given & {"output.path", "output"} else []
    if missing:
        raise ConfigError(
            f"the ready configuration {config} does not know your data: add {' '.join(missing)} "
            f"(data.dev too, to keep the best epoch), or copy and fill in: linker train --show {config} > my.toml"
        )
    return FOLDER / f"{config}.toml"
