"""How every model folder of ours is saved and opened: written beside, flushed, put in place; read within limits.

An encoder (`folder.py`), a scorer of pairs and a news similarity model differ in what they write, not in how. A crash
at any moment leaves the earlier model or the new one, under its name or (between two renamings) set aside.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from indexes.disk import faults
from indexes.disk.writing import link_or_copy, sync, write_durably
from linker.config import build
from linker.errors import ConfigError, InputError
from linker.files import read_json

WEIGHTS, CONFIG, TOKENIZER, CARD = "model.safetensors", "config.json", "tokenizer.json", "README.md"
BACKBONE, ENCODER, TRAINING = "backbone", "encoder", "training"
PARTS = {WEIGHTS, CONFIG, TOKENIZER, CARD, BACKBONE, ENCODER}  # what a model of ours consists of
# The largest value of a hyperparameter, by its name in any of our configurations; 16,384 for the others.
LIMITS = {"layers": 64, "heads": 1024, "window": 1024, "widths": 64, "members": 1024}
LIMITS |= {"max_length": 1 << 20, "limit": 1 << 20, "seed": 1 << 63, "epochs": 1 << 20, "batch_size": 1 << 20}
MAX_SIZE, MAX_TOKENS = 1 << 14, 10_000_000
T = TypeVar("T")


@contextlib.contextmanager
def replacing(folder: Path, formats: Collection[str], kind: str) -> Iterator[Path]:
    """Yield an empty folder to write a model into; it then takes the place of `folder`, whole or not at all.

    Files of the user's in an earlier model stay. Raises InputError when `folder` holds anything but a model of
    `formats` (`kind` says in the error what such models are), when it cannot be written or another process saves it.
    """
    folder = folder.resolve()
    try:
        _make_parents(folder)
        restore(folder)
        check_replaceable(folder, formats, kind)
        with _locked(_beside(folder, "new")) as new:
            try:
                yield new
                _carry_over(folder, new)
                _flush(new)
                faults.point("model.written")
                _put_in_place(new, folder)
            except BaseException:
                shutil.rmtree(new, ignore_errors=True)
                raise
    except OSError as e:
        raise InputError(f"cannot write the model {folder}: {e.strerror or e}") from e


def restore(folder: Path) -> None:
    """Undo what an interrupted save left: put the earlier model back, or remove it where the new one is in place."""
    old = _beside(folder, "old")
    if not old.is_dir():
        return
    if folder.exists():
        shutil.rmtree(old)
    else:
        old.rename(folder)
    sync(folder.parent)


def check_replaceable(folder: Path, formats: Collection[str], kind: str) -> None:
    """Raise InputError unless `folder` is free, empty, holds a model of `formats` or only a training's state."""
    if not folder.exists() or format_of(folder) in formats:
        return
    if not folder.is_dir() or {path.name for path in folder.iterdir()} - {TRAINING}:
        raise InputError(f"{folder} exists and holds no {kind}: name another folder for the model")


def write_part(path: Path, content: bytes) -> None:
    """Write one file of a model, flushed to the disk."""
    write_durably(path, [content])


def format_of(folder: Path) -> str:
    """Return the "format" in a folder's config.json; "" where there is none."""
    try:
        settings = read_json(folder / CONFIG)
    except (OSError, InputError):
        return ""
    return str(settings.get("format", "")) if isinstance(settings, dict) else ""


def read_settings(folder: Path, formats: Collection[str], maker: str) -> dict[str, Any]:
    """Return a folder's config.json, whose "format" is one of `formats`; `maker` is the command that writes them.

    Raises InputError where the file is missing, damaged or of another format.
    """
    path, old = folder / CONFIG, _beside(folder.absolute(), "old")
    if not folder.exists() and old.is_dir():
        raise InputError(
            f"saving {folder} was interrupted and the earlier model is in {old}: rename that folder to {folder}"
        )
    try:
        settings = read_json(path)
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror}; name a folder that `{maker}` wrote") from e
    stated = settings.get("format") if isinstance(settings, dict) else None
    if stated not in formats:
        raise InputError(
            f"{path} has the format {stated!r}; `{maker}` of this version writes {', '.join(formats)}"
        )
    return dict(settings)


def configured(cls: type[T], values: Any, path: Path) -> T:
    """Return a configuration made of the values in `path`, each of its type and within its limit. Raises InputError."""
    try:
        if not isinstance(values, dict):
            raise ConfigError(f"{path}: {type(values).__name__} instead of an object of hyperparameters")
        config = build(cls, dict(values), (), str(path))
    except (ConfigError, RecursionError) as e:
        raise InputError(f"{path} does not describe a model of this version: {e}") from None
    _check_limits(config, path)
    return config


def within(name: str, value: Any, path: Path) -> int:
    """Return a positive whole number of the settings in `path` that is within its limit. Raises InputError."""
    limit = LIMITS.get(name, MAX_SIZE)
    if type(value) is not int or not 0 < value <= limit:
        shown = f"{value!r}"[:80]
        raise InputError(f"{path}: {name} = {shown}: a whole number from 1 to {limit:,} is needed")
    return value


def card(name: str, about: str, code: str, rows: Mapping[str, Any], notes: str, end: str = "") -> bytes:
    """Return a model card: what the model is, an example, its settings as a table, an end and the user's notes."""
    parts = [f"# {name}", about, code]
    if rows:
        table = "\n".join(f"| {key} | {value} |" for key, value in rows.items())
        parts.append(f"| setting | value |\n|---|---|\n{table}")
    return ("\n\n".join(filter(None, [*parts, end, notes.strip()])) + "\n").encode()


def check_no_links(folder: Path) -> None:
    """Raise InputError if a folder from elsewhere is a link or holds one, a pipe or a device."""
    for path in (folder, *folder.rglob("*")):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise InputError(
                f"{path} is a link or no regular file: a model inside another folder may hold neither"
            )


def _check_limits(config: Any, path: Path) -> None:
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        limit = LIMITS.get(field.name, MAX_SIZE)
        numbers = value if isinstance(value, tuple) else (value,)
        if dataclasses.is_dataclass(value):
            _check_limits(value, path)
        elif len(numbers) > MAX_SIZE or not all(_is_within(number, limit) for number in numbers):
            shown = f"{value!r}"[:80]
            raise InputError(f"{path}: {field.name} = {shown} is beyond what this version reads ({limit:,})")


def _is_within(value: Any, limit: int) -> bool:
    return not isinstance(value, int | float) or abs(value) <= limit  # false for NaN, too


def _beside(folder: Path, role: str) -> Path:
    """Return a name beside a model that only this module gives."""
    return folder.with_name(f".{folder.name}.linker-{role}")


def _make_parents(folder: Path) -> None:
    missing = [path for path in folder.parents if not path.exists()]
    folder.parent.mkdir(parents=True, exist_ok=True)
    for path in missing:
        sync(path.parent)


@contextlib.contextmanager
def _locked(new: Path) -> Iterator[Path]:
    """Make the empty folder `new` and hold a lock on it, which a killed process gives back."""
    new.mkdir(exist_ok=True)
    descriptor = os.open(new, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _lock(descriptor, new)
        for path in new.iterdir():  # a killed process left these
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        yield new
    finally:
        os.close(descriptor)


def _lock(descriptor: int, new: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if (
            os.fstat(descriptor).st_ino == new.stat().st_ino
        ):  # else its earlier holder has just put it in place
            return
    except (BlockingIOError, FileNotFoundError):
        pass
    raise InputError(f"another process is saving to {new}: wait until it has ended") from None


def _carry_over(old: Path, new: Path) -> None:
    """Link what in an earlier model is the user's, or a training's state, into the new one."""
    for path in old.iterdir() if old.is_dir() else ():
        if path.name in PARTS:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, new / path.name, symlinks=True, copy_function=_link)
        elif path.is_symlink():
            (new / path.name).symlink_to(path.readlink())
        else:
            link_or_copy(path, new / path.name)


def _link(source: str, target: str) -> str:
    link_or_copy(Path(source), Path(target))
    return target


def _flush(folder: Path) -> None:
    """Flush every file below a folder, whoever wrote it, then the folders from within."""
    for root, _, names in os.walk(folder, topdown=False):
        for path in (Path(root, name) for name in names):
            if path.is_file() and not path.is_symlink():
                sync(path)
        sync(Path(root))


def _put_in_place(new: Path, folder: Path) -> None:
    old = _beside(folder, "old")
    if not folder.exists():
        new.rename(folder)
        sync(folder.parent)
        return
    folder.rename(old)
    faults.point("model.aside")
    try:
        new.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    faults.point("model.placed")
    sync(folder.parent)
    shutil.rmtree(old)
    faults.point("model.cleaned")
