"""A background thread that merges the segments left by commits, for an engine that stays open."""

import logging
import threading

from indexes.collection import Collection
from indexes.interface import IndexesError
from indexes.merging import Open, Publish, is_due, merge


class Merger:
    """Merges segments left by commits, in its own thread."""

    def __init__(self, now: Open, publish: Publish) -> None:
        """`now` and `publish` are passed to `merge`."""
        self._now, self._publish = now, publish
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_requested = False

    def start(self) -> None:
        """Merge the segments that are due, if any, after the merge in progress."""
        collection = self._now()
        if not isinstance(collection, Collection) or not is_due(collection):
            return
        with self._lock:
            self._is_requested = True
            if not self.running:
                self._thread = threading.Thread(target=self._run, name="merge segments")
                self._thread.start()

    @property
    def running(self) -> bool:
        """Whether segments are being merged."""
        return self._thread is not None and self._thread.is_alive()

    def wait(self) -> None:
        """Wait until merging has finished."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while self._take_request():
            try:
                while merge(self._now, self._publish):
                    pass
            except (OSError, IndexesError) as e:
                # The index is unchanged; a merge is tried again after the next commit.
                logging.getLogger("linker").warning("segments were not merged: %s", e)

    def _take_request(self) -> bool:
        """Return whether a commit has asked for a merge since the last call; if none has, the thread ends."""
        with self._lock:
            requested, self._is_requested = self._is_requested, False
            if not requested:
                self._thread = None
            return requested
