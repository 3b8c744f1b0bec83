"""Encoders that die, wait, or record their work, in the processes of Ray's workers."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from tests.helpers import HashEncoder


class DyingEncoder(HashEncoder):
    """Kills its own process with SIGKILL at a certain text, unless a file records that this has happened."""

    def __init__(self, word: str, file: Path) -> None:
        super().__init__()
        self._word, self._file = word, file

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[Any]:
        if any(self._word in text for text in texts) and not self._file.exists():
            self._file.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(texts)


class CountingEncoder(HashEncoder):
    """Leaves a file in a folder for each batch, and takes its time.

    While the file `pause` exists, a process waits after its third batch, so that slower ones get a share.
    """

    def __init__(self, folder: Path, seconds: float = 0.0) -> None:
        super().__init__()
        self.folder, self._seconds = folder, seconds
        self.pause = folder.with_name(f"{folder.name}-pause")

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[Any]:
        time.sleep(self._seconds)
        while self.pause.exists() and len(list(self.folder.glob(f"*-{os.getpid()}"))) >= 3:
            time.sleep(0.05)
        (self.folder / f"{time.time_ns()}-{os.getpid()}").touch()
        return super().encode(texts)

    @property
    def batches(self) -> int:
        """The total number of batches encoded by all processes."""
        return len(list(self.folder.iterdir()))

    def wait(self, batches: int, driver: subprocess.Popen[str] | None = None) -> None:
        """Wait until this many have been encoded, while the driver is alive."""
        while self.batches < batches:
            assert driver is None or driver.poll() is None
            time.sleep(0.05)


class GpuEncoder(CountingEncoder):
    """Leaves a file in a folder for each batch, with the numbers of the GPUs that Ray has given its process."""

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[Any]:
        gpus = "+".join(os.environ.get("CUDA_VISIBLE_DEVICES", "").split(","))
        (self.folder / f"{time.time_ns()}-{gpus}-{os.getpid()}").touch()
        return HashEncoder.encode(self, texts)


def used(folder: Path) -> tuple[set[str], set[str]]:
    """Return the numbers of the GPUs of a GpuEncoder's batches, and the processes that encoded them."""
    names = [path.name.split("-") for path in folder.iterdir()]
    return {gpus for _, gpus, _ in names}, {pid for *_, pid in names}


class FailingEncoder(HashEncoder):
    """Raises an error at every text."""

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[Any]:
        raise MemoryError("no room for a batch")


class ChangingEncoder(HashEncoder):
    """A different encoder in each process."""

    def __reduce__(self) -> tuple[type[HashEncoder], tuple[int, str]]:
        return HashEncoder, (self.dim, "other")
