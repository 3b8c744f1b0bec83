"""Checkpoints of a long pass over all pairs, next to the run, from which an interrupted pass resumes."""

import io
import time
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import xxhash

from linker.base.errors import InputError
from linker.base.files import write_atomically
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.scoring.candidates import Candidates, PassState

# Errors from numpy and zipfile for a damaged file.
DAMAGE = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
EVERY = 60.0  # seconds between two writes


@dataclass
class Checkpoint:
    """Saves a pass to `path` every `every` seconds.

    With `resume`, the pass continues from the file there, which must have the same `fingerprint`; otherwise the file is
    overwritten.
    """

    path: Path
    fingerprint: str
    resume: bool = False
    every: float = EVERY
    _written: float = field(default_factory=time.monotonic)

    def restore(self, progress: PassState) -> None:
        """Fill `progress` with the saved state. Raises InputError if it is damaged or belongs to another task."""
        if not self.resume or not self.path.exists():
            return
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as state:
                if str(state["fingerprint"]) != self.fingerprint:
                    raise InputError(
                        f"{self.path} was left by another task (pages, method, options): remove it to start again"
                    )
                done = len(state["targets"])
                progress.found.targets[:done] = state["targets"]
                progress.found.scores[:done] = state["scores"]
                progress.best[:] = state["best"]
                progress.holders[:] = state["holders"]
                progress.done = done
        except DAMAGE as e:
            raise InputError(f"{self.path} is damaged: remove it to start again") from e

    def keep(self, progress: PassState) -> None:
        """Write the state atomically if the last write was long enough ago. Raises InputError if writing fails."""
        if time.monotonic() - self._written < self.every:
            return
        buffer = io.BytesIO()
        candidates = Candidates(
            progress.found.targets[: progress.done], progress.found.scores[: progress.done]
        )
        np.savez(
            buffer,
            fingerprint=np.array(self.fingerprint),
            targets=candidates.targets.astype(np.int32),
            scores=candidates.scores,
            best=progress.best,
            holders=progress.holders,
        )
        write_atomically(self.path, buffer.getvalue())
        self._written = time.monotonic()


def fingerprint(*parts: Pages | str) -> str:
    """Return a hexadecimal hash of pages (ids, texts, language) and strings."""
    digest = xxhash.xxh3_128()
    for part in parts:
        words = (part,) if isinstance(part, str) else (part.language.code, *part.ids, *part.texts)
        for word in words:
            digest.update(word.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()
