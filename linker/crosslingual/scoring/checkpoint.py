"""A long pass over all pairs, kept from time to time beside the run, so that it can go on after an interruption."""

from __future__ import annotations

import io
import time
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import xxhash

from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.scoring.candidates import Candidates, Progress
from linker.errors import InputError
from linker.files import write_atomically

# what numpy and zipfile raise where a file is not as it was written
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
    """Keeps a pass in `path`; what another task left there (another fingerprint) is refused.

    `resume`: go on from what is there; otherwise it is written over.
    """

    path: Path
    fingerprint: str
    resume: bool = False
    every: float = EVERY
    _written: float = field(default_factory=time.monotonic)

    def restore(self, progress: Progress) -> None:
        """Fill in what an interrupted pass found. Raises InputError if it is damaged or was about something else."""
        if not self.resume or not self.path.exists():
            return
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
                if str(kept["fingerprint"]) != self.fingerprint:
                    raise InputError(
                        f"{self.path} was left by another task (pages, method, options): remove it to begin anew"
                    )
                done = len(kept["targets"])
                progress.found.targets[:done] = kept["targets"]
                progress.found.scores[:done] = kept["scores"]
                progress.best[:] = kept["best"]
                progress.done = done
        except DAMAGE as e:
            raise InputError(f"{self.path} is damaged ({e}): remove it to begin anew") from e

    def keep(self, progress: Progress) -> None:
        """Write the state, atomically, if the last time is long enough ago. Raises InputError."""
        if time.monotonic() - self._written < self.every:
            return
        buffer = io.BytesIO()
        found = Candidates(progress.found.targets[: progress.done], progress.found.scores[: progress.done])
        np.savez(
            buffer,
            fingerprint=np.array(self.fingerprint),
            targets=found.targets.astype(np.int32),
            scores=found.scores,
            best=progress.best,
        )
        write_atomically(self.path, buffer.getvalue())
        self._written = time.monotonic()

    def remove(self) -> None:
        """Forget the pass: its result is written."""
        self.path.unlink(missing_ok=True)


def fingerprint(*parts: Pages | str) -> str:
    """Return a hash of pages (ids, texts, language) and of other words that decide a task."""
    digest = xxhash.xxh3_128()
    for part in parts:
        words = (part,) if isinstance(part, str) else (part.language.code, *part.ids, *part.texts)
        for word in words:
            digest.update(word.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()
