"""Generations that a commit has replaced, released by a thread of their own."""

from __future__ import annotations

import threading

KEPT = 0.25  # seconds in which searches of a replaced generation end


class Retiring:
    """Keeps replaced generations until the searches that began with them have ended.

    Whoever releases a generation last deletes the files that the commit has removed, and waits for the disk, which
    no search should have to do.
    """

    def __init__(self) -> None:
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._kept: list[object] = []
        self._thread: threading.Thread | None = None

    def put(self, generation: object) -> None:
        """Keep a generation for KEPT to twice KEPT seconds."""
        with self._lock:
            self._kept.append(generation)
            # After a fork, the child has no such thread.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="release generations", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Release all."""
        self._closed.set()
        thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while kept := self._taken():
            self._closed.wait(KEPT)
            kept.clear()

    def _taken(self) -> list[object]:
        """Return what was put since the last call; if nothing was, the thread ends."""
        with self._lock:
            kept, self._kept = self._kept, []
            if not kept:
                self._thread = None
            return kept
