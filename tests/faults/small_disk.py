"""A disk that is soon full: a tmpfs of a few megabytes."""

import gc
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def mount(folder: Path, size: str, *options: str) -> None:
    command = ["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}", *options]), "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount a tmpfs here (needs root): {done.stderr.strip()}")


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[Path]:
    """Mount a disk of `size` at the new `folder` for the block; skip the test if it lacks the rights for that."""
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    mount(folder, size)
    yield folder
    gc.collect()  # closes files on the disk that an exception's frames keep open
    subprocess.run(["umount", str(folder)], check=True)
