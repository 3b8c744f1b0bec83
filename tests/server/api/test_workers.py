"""`linker serve --api --workers N`: replaced when killed, sent signals, ended together; a real server each time."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from indexes.interface import Document
from indexes.store.records import Manifest
from indexes.writer import Writer
from linker.engine.engine import Engine
from linker.server.running import listen
from tests.helpers import linker, linker_process
from tests.server.page.chromium import Server

SECONDS = 60.0


def make(directory: Path) -> Path:
    with Writer.create(directory, Manifest("none")) as writer:
        writer.add([Document("a", "rain floods valencia"), Document("b", "voters elect parliament")], None)
        writer.commit()
    return directory


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("workers") / "news")


class Service(Server):
    """A server with two workers."""

    def __init__(self, *directories: Path) -> None:
        first, *others = map(str, directories)
        super().__init__(Path(first), 0, *others, "--api", "--workers", "2")

    @property
    def workers(self) -> set[int]:
        """The process ids of the workers."""
        return {int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()}

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self.address + path, timeout=SECONDS) as answer:
            return str(answer.read().decode())

    def found(self, text: str, index: str = "news") -> list[str]:
        body = json.dumps({"text": text, "index": index}).encode()
        request = urllib.request.Request(
            f"{self.address}/v1/search", body, {"content-type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return [hit["id"] for hit in json.load(answer)["results"][0]["hits"]]

    def memory(self) -> set[int]:
        """The workers that have been asked for metrics, by process id."""
        return {
            int(p)
            for p in re.findall(r'^linker_resident_memory_bytes{pid="(\d+)"}', self.get("/metrics"), re.M)
        }


@contextlib.contextmanager
def serving(*directories: Path) -> Iterator[Service]:
    server = Service(*directories)
    try:
        yield server
    finally:
        if server._process.poll() is None:
            server.end()


def wait(until: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not until():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="there is no /proc")
def test_a_killed_worker_is_replaced_and_all_end_with_their_supervisor(directory: Path) -> None:
    with serving(directory) as server:
        before = server.workers
        assert len(before) == 2
        for _ in range(50):  # connections go to either worker
            assert server.found("rain") == ["a"]
        queries = r'^linker_queries_total{index="news"} 50\.0$'
        assert re.search(queries, server.get("/metrics"), re.M), "the metrics are those of all workers"
        killed = min(before)
        os.kill(killed, signal.SIGKILL)
        wait(lambda: len(server.workers - before) == 1 and killed not in server.workers)
        for _ in range(50):
            assert server.found("rain") == ["a"]
        assert killed not in server.memory()
        workers = server.workers
        server.kill()
        wait(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in workers))
    assert "a worker has ended and is replaced" in server.errors and f"pid={killed}" in server.errors
    assert server.errors.count("a worker has ended") == 1


def test_commits_and_signals_reach_all_workers(tmp_path: Path) -> None:
    """Commits are followed although nobody searches, and Ctrl-C ends all workers."""
    directory = make(tmp_path / "all" / "news")
    with serving(tmp_path / "all") as server:
        with Engine.open(directory) as engine:
            engine.add([Document("c", "rain again")])
            generation = engine.collection.manifest.generation
        # with several workers, the metrics report the oldest one's
        wait(lambda: f'linker_generation{{index="news"}} {generation}.0' in server.get("/metrics"))
        for _ in range(20):
            assert set(server.found("rain")) == {"a", "c"}
        make(tmp_path / "all" / "more")
        with pytest.raises(urllib.error.HTTPError):
            server.found("rain", "more")
        os.kill(server.pid, signal.SIGHUP)
        found = 0
        end = time.monotonic() + SECONDS
        while found < 30:  # in a row, so from both workers
            try:
                server.found("rain", "more")
                found += 1
            except urllib.error.HTTPError:
                found = 0
            assert time.monotonic() < end
        workers = server.workers
        assert server._end(signal.SIGINT) == 0
        assert server.errors.count("reloaded indexes=2") == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def test_a_mistake_is_told_once(tmp_path: Path, directory: Path) -> None:
    done = linker_process("serve", tmp_path, "--api", "--workers", "2", "--port", "0", check=1)
    assert "there is no index" in done.stderr and done.stderr.count("\n") == 1
    damaged = make(tmp_path / "damaged")
    (damaged / "segments" / "000001" / "ids.txt").unlink()
    done = linker_process("serve", damaged, "--api", "--workers", "2", "--port", "0", check=1)
    assert "error: " in done.stderr and str(damaged) in done.stderr
    assert done.stdout == ""
    assert "--api" in linker("serve", directory, "--workers", "2", check=2).stderr


def test_answers_are_sent_at_once() -> None:
    with listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP, "asyncio sets TCP_NODELAY only then"


def test_a_worker_that_gets_ready_while_the_server_ends_does_not_kill_it() -> None:
    script = """
import os, signal, time
from linker.server.api.workers import Workers

def work(is_ready):
    is_ready(), is_ready()
    time.sleep(60)

def end():
    time.sleep(0.3)  # until the second signal has come
    os.kill(os.getpid(), signal.SIGTERM)

raise SystemExit(Workers(1, work, grace=5, ready=end).run())
"""
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=SECONDS).returncode == 0
