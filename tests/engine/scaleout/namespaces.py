"""Virtual machines for a test: network namespaces on one bridge, each with an address, to cut off and kill."""

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from tests.namespaces import NoNamespacesError, check, ip


class Machine:
    """A network namespace and the processes in it."""

    def __init__(self, name: str, address: str) -> None:
        self.name, self.address = name, address
        self._started: list[subprocess.Popen[str]] = []

    def run(self, command: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """Start a command on the machine."""
        process = subprocess.Popen(["ip", "netns", "exec", self.name, *command], text=True, **options)
        self._started.append(process)
        return process

    @property
    def pids(self) -> set[int]:
        """The processes that run on it."""
        return {int(pid) for pid in ip("netns", "pids", self.name).split()}

    def die(self) -> None:
        """Cut it off, so that nobody notices its end, and kill all its processes."""
        ip("-n", self.name, "link", "set", "eth0", "down")
        self.kill()

    def kill(self) -> None:
        """Kill all its processes."""
        while pids := self.pids:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for process in self._started:
            process.wait()


@contextlib.contextmanager
def machines(count: int) -> Iterator[tuple[str, list[Machine]]]:
    """Give this machine's address, and machines that reach it and each other; skip if that is impossible."""
    number = os.getpid() % 250
    network, bridge = f"10.77.{number}", f"lk{number}"
    with contextlib.ExitStack() as stack:
        try:
            check(["ip"])
            ip("link", "add", bridge, "type", "bridge")
        except NoNamespacesError as e:
            pytest.skip(str(e))
        stack.callback(ip, "link", "del", bridge)
        ip("addr", "add", f"{network}.254/24", "dev", bridge)
        ip("link", "set", bridge, "up")
        yield f"{network}.254", [_machine(stack, bridge, network, n + 1) for n in range(count)]


def _machine(stack: contextlib.ExitStack, bridge: str, network: str, number: int) -> Machine:
    machine, cable = Machine(f"{bridge}-{number}", f"{network}.{number}"), f"{bridge}v{number}"
    ip("netns", "add", machine.name)
    stack.callback(ip, "netns", "del", machine.name)
    stack.callback(machine.die)
    ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", machine.name)
    ip("link", "set", cable, "master", bridge, "up")
    ip("-n", machine.name, "addr", "add", f"{machine.address}/24", "dev", "eth0")
    for link in ("eth0", "lo"):
        ip("-n", machine.name, "link", "set", link, "up")
    return machine


@contextlib.contextmanager
def reachable(host: str, port: int) -> Iterator[int]:
    """Let others reach a server on this machine's loopback at `host`; give the port there."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError), contextlib.closing(writer):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(asyncio.CancelledError):  # at the end
            await asyncio.gather(copy(reader, back), copy(there, writer))

    async def serve() -> None:
        ended = asyncio.Event()
        server = await asyncio.start_server(accept, host, 0)
        started.set_result((server.sockets[0].getsockname()[1], asyncio.get_running_loop(), ended))
        await ended.wait()
        server.close()

    started: Future[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(serve()))  # this cancels the remaining tasks
    thread.start()
    given, loop, ended = started.result(timeout=60)
    try:
        yield given
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
