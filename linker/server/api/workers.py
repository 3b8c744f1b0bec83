"""Several processes that serve one listening socket: a process that ends is replaced, and signals are forwarded to all.

uvicorn's own supervisor does not fit: it restarts its workers on SIGHUP, kills one that is slow to start, pickles the
application to hand it over, and leaves its workers behind when it is killed itself.
"""

import contextlib
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator

READY = signal.SIGRTMIN  # sent by a worker to the supervisor; unlike others, real-time signals are queued
SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, READY})
SHARED = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client reads this variable
PAUSE = 1.0  # seconds before a worker that did not get ready is replaced
MARGIN = 5.0  # seconds beyond its grace period after which a worker is killed


@contextlib.contextmanager
def shared_metrics() -> Iterator[None]:
    """Collect the metrics of all workers in a folder; enter this context before importing prometheus_client."""
    with tempfile.TemporaryDirectory(prefix="linker-metrics-") as folder:
        os.environ[SHARED] = folder
        yield


class Workers:
    """The supervisor of `count` worker processes; call `run` once, before any thread is started."""

    def __init__(
        self,
        count: int,
        work: Callable[[Callable[[], None]], None],
        *,
        grace: float,
        ready: Callable[[], None],
        ended: Callable[[int], None] = lambda pid: None,
    ) -> None:
        """Call `work(is_ready)` in each worker; it calls `is_ready` once it serves requests, and ends after SIGTERM.

        Workers have `grace` seconds to end. `ready` is called here once all of them are ready, and `ended` with the
        process id of each that ended by itself.
        """
        self._count, self._work, self._grace = count, work, grace
        self._on_ready, self._on_end = ready, ended
        self._alive: dict[int, bool] = {}  # by process id: whether the worker is ready
        self._pipe = (-1, -1)  # when it closes, workers know that their supervisor is gone

    def run(self) -> int:
        """Serve until SIGINT or SIGTERM; return the exit status: 1 if a worker could not start at the beginning."""
        self._pipe = os.pipe()
        old = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            for _ in range(self._count):
                self._start()
            return self._supervise()
        finally:
            self._end()
            signal.signal(READY, signal.SIG_IGN)  # a pending signal would end this process
            signal.pthread_sigmask(signal.SIG_SETMASK, old)
            for end in self._pipe:
                os.close(end)

    def _supervise(self) -> int:
        was_ready = False
        while True:
            info = signal.sigwaitinfo(SIGNALS)
            if info.si_signo in (signal.SIGINT, signal.SIGTERM):
                return 0
            if info.si_signo == signal.SIGHUP:
                self._send(signal.SIGHUP)
            elif info.si_signo == READY and info.si_pid in self._alive:
                self._alive[info.si_pid] = True
            else:
                ended = self._reap()
                if not was_ready and ended:
                    return 1
                for pid in ended:
                    self._on_end(pid)
                if not all(ended.values()):
                    time.sleep(PAUSE)
                while len(self._alive) < self._count:
                    self._start()
            if not was_ready and all(self._alive.values()):
                was_ready = True
                self._on_ready()

    def _start(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid:
            self._alive[pid] = False
        else:
            self._be_worker()

    def _be_worker(self) -> None:
        """Work, and leave by `os._exit`, since a worker must not run the supervisor's clean-up."""
        supervisor, status = os.getppid(), 1
        try:
            os.close(self._pipe[1])
            threading.Thread(target=self._watch, name="watch the supervisor", daemon=True).start()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            self._work(lambda: os.kill(supervisor, READY))
            status = 0
        except SystemExit as e:
            status = e.code if isinstance(e.code, int) else int(e.code is not None)
            if isinstance(e.code, str):
                print(e.code, file=sys.stderr)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            with contextlib.suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)

    def _watch(self) -> None:
        os.read(self._pipe[0], 1)  # nobody writes to the pipe: this returns when the supervisor is gone
        os.kill(os.getpid(), signal.SIGTERM)

    def _reap(self) -> dict[int, bool]:
        """Reap the workers that have ended; return by process id whether each had been ready."""
        ended = {pid: r for pid, r in self._alive.items() if os.waitpid(pid, os.WNOHANG)[0]}
        for pid in ended:
            del self._alive[pid]
        return ended

    def _send(self, number: int) -> None:
        for pid in self._alive:
            os.kill(pid, number)  # not yet waited for, so no other process can have this id

    def _end(self) -> None:
        """End the workers, and kill those that have not ended in time."""
        self._send(signal.SIGTERM)
        deadline = time.monotonic() + self._grace + MARGIN
        while self._alive and (left := deadline - time.monotonic()) > 0:
            signal.sigtimedwait({signal.SIGCHLD}, min(left, 0.2))
            self._reap()
        self._send(signal.SIGKILL)
        for pid in list(self._alive):
            os.waitpid(pid, 0)
            del self._alive[pid]
