"""A real `linker serve --api` for benchmarks: started, queried over loopback, inspected, stopped."""

import contextlib
import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

START_SECONDS = 180.0


class Service:
    """`linker serve DIR --api` in its own processes; requests raise OSError or HTTPException if it is killed."""

    def __init__(self, directory: Path, *options: str, environment: Mapping[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "linker", "serve", str(directory), "--api", "--port", "0", *options]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        assert self.process.stdout is not None
        address = self.process.stdout.readline().strip()
        if not address:
            raise RuntimeError("the server did not start: run `linker serve --api` by hand to see why")
        self.port = int(address.rstrip("/").rpartition(":")[2])
        self._wait()

    def _wait(self) -> None:
        """Wait until its encoders are loaded."""
        end = time.monotonic() + START_SECONDS
        while self.request("GET", "/ready")[0] != http.client.OK:
            if time.monotonic() > end:
                raise RuntimeError("the server is not ready: its encoder cannot be loaded")
            time.sleep(0.1)

    def request(self, method: str, path: str, body: Any = None, timeout: float = 60) -> tuple[int, Any]:
        """Return the status and content (parsed JSON) of the response to a request on its own connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            data = None if body is None else orjson.dumps(body)
            connection.request(method, path, data, {"content-type": "application/json"})
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        is_json = "json" in response.headers.get("content-type", "")
        return response.status, orjson.loads(content) if is_json else content.decode()

    def workers(self) -> list[int]:
        """Return the process ids of the workers, oldest first; none if a single process serves."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return sorted(map(int, children.split()), key=_started)

    def kill(self, pid: int) -> None:
        """Kill a worker as the OOM killer would."""
        os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """End the server; kill it if it does not exit."""
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextlib.contextmanager
def serving(
    directory: Path, *options: str, environment: Mapping[str, str] | None = None
) -> Iterator[Service]:
    """Yield a server that ends with the block."""
    service = Service(directory, *options, environment=environment)
    try:
        yield service
    finally:
        service.close()


def memory_mib(pid: int) -> dict[str, float]:
    """Return a process's resident and proportional memory (shared pages count in part), in MiB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return {
        name.lower(): round(int(re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)[1]) / 1024, 1)  # type: ignore[index]  # it is always there
        for name in ("Rss", "Pss")
    }


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _started(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
