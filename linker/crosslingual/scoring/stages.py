"""Results of the stages of a long run, in a folder next to the run, from which an interrupted run resumes."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from linker.base.errors import InputError
from linker.base.files import write_atomically
from linker.crosslingual.scoring.checkpoint import DAMAGE, Checkpoint

Arrays = Mapping[str, npt.NDArray[Any]]
OWNER = "TASK"  # the file that holds the fingerprint


@dataclass(frozen=True, eq=False)
class Stages:
    """Stages of a run, by name. Each is computed once, and kept in `folder` if there is one.

    With `resume`, the folder's content is used if it has the same `fingerprint`; otherwise the folder is emptied.
    """

    folder: Path | None = None
    fingerprint: str = ""
    resume: bool = False
    _begun: list[Path] = field(default_factory=list)
    _memory: dict[str, Arrays] = field(default_factory=dict)

    @classmethod
    def beside(cls, checkpoint: Checkpoint | None) -> Stages:
        """Return stages in a folder at the path of a checkpoint's file, or without a folder."""
        return cls(checkpoint.path, checkpoint.fingerprint, checkpoint.resume) if checkpoint else cls()

    def remember(self, name: str, make: Callable[[], Arrays], *, in_memory: bool = False) -> Arrays:
        """Return the arrays of a stage; small ones may stay `in_memory`. Raises InputError if its file is damaged."""
        if name in self._memory:
            return self._memory[name]
        arrays = make() if self.folder is None else self._kept(self._open(self.folder) / f"{name}.npz", make)
        if in_memory:
            self._memory[name] = arrays
        return arrays

    @staticmethod
    def _kept(path: Path, make: Callable[[], Arrays]) -> Arrays:
        if path.exists():
            try:
                with path.open("rb") as file, np.load(file, allow_pickle=False) as stage:
                    return dict(stage)
            except DAMAGE as e:
                raise InputError(f"{path} is damaged: remove {path.parent} to start again") from e
        arrays = make()
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        write_atomically(path, buffer.getvalue())
        return arrays

    def checkpoint(self, name: str) -> Checkpoint | None:
        """Return a checkpoint for the pass of this name."""
        if self.folder is None:
            return None
        return Checkpoint(self._open(self.folder) / f"{name}.pass", self.fingerprint, resume=True)

    def _open(self, folder: Path) -> Path:
        """Create the folder, or check that it belongs to this task, on the first call."""
        owner = folder / OWNER
        if not self._begun:
            self._begun.append(folder)
            if self.resume and folder.exists():
                if not owner.is_file() or owner.read_text(encoding="utf-8") != self.fingerprint:
                    raise InputError(
                        f"{folder} was left by another task (pages, method, options): remove it to start again"
                    )
                return folder
            remove(folder)
            folder.mkdir()
            write_atomically(owner, self.fingerprint.encode())
        return folder


def remove(path: Path) -> None:
    """Delete the file or folder that a run left to resume from, if there is any."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def digest(*arrays: npt.NDArray[Any]) -> str:
    """Return a hexadecimal hash of arrays, to name a stage by its input."""
    state = xxhash.xxh3_128()
    for array in arrays:
        state.update(f"{array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return state.hexdigest()
