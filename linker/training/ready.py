"""Ready-made configurations: TOML files in the package, complete except for the data paths."""

import difflib
from collections.abc import Sequence
from pathlib import Path

from linker.base.errors import ConfigError

FOLDER = Path(__file__).parent / "configs"
PATHS = ("data.queries", "data.documents", "data.train")  # keys that a ready-made file leaves open


def names() -> list[str]:
    """Return the names of the ready-made configurations."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def text_of(name: str) -> str:
    """Return the text of a ready-made configuration. Raises ConfigError if there is none of that name."""
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ConfigError(
            f"there is no built-in configuration {name!r}: {hint}The built-in ones are {', '.join(names())}"
        )
    return (FOLDER / f"{name}.toml").read_text(encoding="utf-8")


def find(config: Path, overrides: Sequence[str]) -> Path:
    """Return the file of CONFIG, a path or a ready-made name. Raises ConfigError if it is neither or incomplete."""
    if config.exists():
        return config
    if config.suffix or config.name != str(config):
        raise ConfigError(f"cannot read {config}: no such file")
    try:
        text_of(str(config))
    except ConfigError as e:
        raise ConfigError(f"cannot read {config}: the file does not exist; {e}") from None
    keys = {text.partition("=")[0].strip() for text in overrides}
    missing = [f"--set {key}=PATH" for key in PATHS if not keys & {key, "data"}]
    missing += ["--out MODEL"] if not keys & {"output.path", "output"} else []
    if missing:
        raise ConfigError(
            f"the built-in configuration {config} does not know your data: add {' '.join(missing)} "
            f"(and data.dev, to keep the best epoch), or copy it and fill it in: linker train --show {config} > my.toml"
        )
    return FOLDER / f"{config}.toml"
