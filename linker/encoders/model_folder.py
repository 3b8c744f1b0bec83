"""Model folders: they are written under a temporary name, flushed and renamed, and read within limits.

Encoders (`folder.py`), scorers of pairs and news similarity models share this module. After a crash at any moment,
either the earlier model or the new one exists, under its name or (between two renames) a temporary one.
"""

import contextlib
import dataclasses
import fcntl
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import xxhash

from indexes.disk import faults
from indexes.disk.writing import link_or_copy, sync, write
from linker.base.config import build
from linker.base.errors import ConfigError, InputError
from linker.base.files import read_json, read_regular

WEIGHTS, CONFIG, TOKENIZER, CARD = "model.safetensors", "config.json", "tokenizer.json", "README.md"
MODULES = "modules.json"  # the file that sentence-transformers reads first
GRAPH = "model.onnx"  # the model for ONNX Runtime; its weights stay in WEIGHTS
BACKBONE, ENCODER, TRAINING = "backbone", "encoder", "training"
# Everything else in a model folder belongs to the user.
PARTS = {WEIGHTS, CONFIG, TOKENIZER, CARD, GRAPH, MODULES, BACKBONE, ENCODER}
# Maximum values of hyperparameters, by name in any configuration; MAX_SIZE for the others.
LIMITS = {"layers": 64, "heads": 1024, "window": 1024, "widths": 64, "members": 1024}
LIMITS |= {"max_length": 1 << 20, "limit": 1 << 20, "seed": 1 << 63, "epochs": 1 << 20, "batch_size": 1 << 20}
MAX_SIZE, MAX_TOKENS = 1 << 14, 10_000_000
T = TypeVar("T")


@contextlib.contextmanager
def replacing(folder: Path, formats: Collection[str], kind: str) -> Iterator[Path]:
    """Yield an empty folder to write a model into; it then replaces `folder` atomically.

    The user's own files in an earlier model are kept. Raises InputError if `folder` holds anything but a model of
    one of the `formats` (called `kind` in the message), cannot be written, or is being saved by another process.
    """
    folder = folder.resolve()
    try:
        _make_parents(folder)
        restore(folder)
        check_replaceable(folder, formats, kind)
        with _locked(_temporary(folder, "new")) as new:
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
    """Clean up after an interrupted save: put the earlier model back, or remove it if the new one is in place."""
    old = _temporary(folder, "old")
    if not old.is_dir():
        return
    if folder.exists():
        shutil.rmtree(old)
    else:
        old.rename(folder)
    sync(folder.parent)


def check_replaceable(folder: Path, formats: Collection[str], kind: str) -> None:
    """Raise InputError unless `folder` is missing or empty, or holds a model of `formats` or a training's state."""
    if not folder.exists() or format_of(folder) in formats:
        return
    if not folder.is_dir() or {path.name for path in folder.iterdir()} - {TRAINING}:
        raise InputError(f"{folder} exists, but holds no {kind}: name another folder for the model")


def write_part(path: Path, content: bytes) -> None:
    """Write one file of a model and flush it to the disk."""
    write(path, [content])
    sync(path)


def read_part(path: Path, limit: int, checksum: object) -> bytes:
    """Return a model's file, at most `limit` bytes. Raises InputError if its XXH3 is not `checksum`."""
    try:
        content = read_regular(path, limit)
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror}; copy the whole model again") from e
    if checksum != xxhash.xxh3_128_hexdigest(content):
        raise InputError(f"{path} is damaged: it is not the one that was saved; copy the model again")
    return content


def format_of(folder: Path) -> str:
    """Return the "format" in a folder's config.json, or "" if there is none."""
    try:
        settings = read_json(folder / CONFIG)
    except (OSError, InputError):
        return ""
    return str(settings.get("format", "")) if isinstance(settings, dict) else ""


def read_settings(folder: Path, formats: Collection[str], maker: str) -> dict[str, Any]:
    """Return config.json if its "format" is one of `formats`, which `maker` writes. Raises InputError."""
    path, old = folder / CONFIG, _temporary(folder.absolute(), "old")
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
    """Return a `cls` from the values in `path`. Raises InputError for unknown, mistyped or excessive values."""
    try:
        if not isinstance(values, dict):
            raise ConfigError(f"{path}: {type(values).__name__} instead of an object of hyperparameters")
        config = build(cls, dict(values), (), str(path))
    except (ConfigError, RecursionError) as e:
        raise InputError(f"{path} does not describe a model of this version: {e}") from None
    _check_limits(config, path)
    return config


def within(name: str, value: Any, path: Path) -> int:
    """Return `value`, the setting `name` in `path`. Raises InputError unless it is an integer from 1 to its limit."""
    limit = LIMITS.get(name, MAX_SIZE)
    if type(value) is not int or not 0 < value <= limit:
        shown = f"{value!r}"[:80]
        raise InputError(f"{path}: {name} = {shown}: it must be an integer from 1 to {limit:,}")
    return value


def card(name: str, about: str, code: str, rows: Mapping[str, Any], notes: str, end: str = "") -> bytes:
    """Return a model card: a description, example code, a settings table, a closing text and the user's notes."""
    parts = [f"# {name}", about, code]
    if rows:
        table = "\n".join(f"| {key} | {value} |" for key, value in rows.items())
        parts.append(f"| setting | value |\n|---|---|\n{table}")
    return ("\n\n".join(filter(None, [*parts, end, notes.strip()])) + "\n").encode()


def check_no_links(folder: Path) -> None:
    """Raise InputError if an untrusted folder is a link, or holds a link, a pipe or a device."""
    for path in (folder, *folder.rglob("*")):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise InputError(
                f"{path} is a link or not a regular file: a model inside another folder may hold neither"
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
            raise InputError(f"{path}: {field.name} = {shown} exceeds the limit of this version ({limit:,})")


def _is_within(value: Any, limit: int) -> bool:
    return not isinstance(value, int | float) or abs(value) <= limit  # False for NaN too


def _temporary(folder: Path, role: str) -> Path:
    """Return the path of this module's temporary folder for a model and a role."""
    return folder.with_name(f".{folder.name}.linker-{role}")


def _make_parents(folder: Path) -> None:
    missing = [path for path in folder.parents if not path.exists()]
    folder.parent.mkdir(parents=True, exist_ok=True)
    for path in missing:
        sync(path.parent)


@contextlib.contextmanager
def _locked(new: Path) -> Iterator[Path]:
    """Create the empty folder `new` and hold a lock on it, which is released if the process is killed."""
    new.mkdir(exist_ok=True)
    descriptor = os.open(new, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _lock(descriptor, new)
        for path in new.iterdir():  # files left by a killed process
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        yield new
    finally:
        os.close(descriptor)


def _lock(descriptor: int, new: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Otherwise the previous holder of the lock has just renamed the folder.
        if os.fstat(descriptor).st_ino == new.stat().st_ino:
            return
    except (BlockingIOError, FileNotFoundError):
        pass
    raise InputError(f"another process is saving to {new}: wait until it has finished") from None


def _carry_over(old: Path, new: Path) -> None:
    """Link the user's own files and the training state from an earlier model into the new one."""
    for path in old.iterdir() if old.is_dir() else ():
        if path.name in PARTS or os.path.lexists(new / path.name):  # this is a part of the new model
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
    """Flush every file below a folder, whoever wrote it, then the folders, innermost first."""
    for root, _, names in os.walk(folder, topdown=False):
        for path in (Path(root, name) for name in names):
            if path.is_file() and not path.is_symlink():
                sync(path)
        sync(Path(root))


def _put_in_place(new: Path, folder: Path) -> None:
    old = _temporary(folder, "old")
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
