"""Private network namespaces joined by a bridge: machines that can be cut off, on one machine.

A hub holds the bridge and 127.78.0.1; the spokes are 127.78.0.11, 127.78.0.12 and so on. Loopback addresses can be
routed if the kernel is configured for it, and on them Elasticsearch does not demand more open files than a machine
may allow.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from types import TracebackType
from typing import Self

NET = "127.78.0"
PROGRAMS = ("ip", "nsenter", "sysctl")


class NoNamespacesError(Exception):
    """Network namespaces cannot be created here; the message gives the reason and the remedy."""


def ip(*arguments: str) -> str:
    """Run `ip` and return its output. Raises NoNamespacesError."""
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoNamespacesError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def check(programs: Sequence[str] = PROGRAMS) -> None:
    """Raise NoNamespacesError unless this process may create namespaces and the programs are installed."""
    if missing := [program for program in programs if shutil.which(program) is None]:
        raise NoNamespacesError(
            f"there is no {', '.join(missing)}: install iproute2, util-linux and procps (apt-get install)"
        )
    if os.geteuid() != 0:
        raise NoNamespacesError("network namespaces need root: run this again as root, or with sudo")


class Network:
    """A hub and `count` spokes, removed at the end of the `with` block. Raises NoNamespacesError."""

    def __init__(self, count: int, name: str = "") -> None:
        """`name`: of a network that another process has created."""
        self._name = name or f"linker-{os.getpid()}"
        self._count = count

    def __enter__(self) -> Self:
        check()
        try:
            self._space("hub", f"{NET}.1")
            for number in range(self._count):
                self._space(f"{number}", self.address(number))
                self.join(number)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    @property
    def name(self) -> str:
        """The name by which other processes find the network."""
        return self._name

    @staticmethod
    def address(number: int) -> str:
        """Return the address of a spoke."""
        return f"{NET}.{11 + number}"

    def inside(self, space: int | str) -> tuple[str, ...]:
        """Return the prefix for a command that is to run in a spoke, or in the "hub"."""
        return ("nsenter", f"--net=/run/netns/{self._name}-{space}")

    def _space(self, space: str, address: str) -> None:
        name, hub = f"{self._name}-{space}", f"{self._name}-hub"
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
        # The rest of 127.0.0.0/8 then belongs to the bridge.
        ip("-n", name, "address", "delete", "127.0.0.1/8", "dev", "lo")
        ip("-n", name, "address", "add", "127.0.0.1/32", "dev", "lo")
        setting = "net.ipv4.conf.all.route_localnet=1"
        subprocess.run([*self.inside(space), "sysctl", "-qw", setting], check=True)
        if space == "hub":
            ip("-n", name, "link", "add", "eth0", "type", "bridge")
        else:
            ip(
                "link",
                "add",
                "eth0",
                "netns",
                name,
                "type",
                "veth",
                "peer",
                "name",
                f"to{space}",
                "netns",
                hub,
            )
        ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")

    def cut(self, number: int) -> None:
        """Drop everything sent to and from a spoke, as if a cable were unplugged at a distant switch."""
        ip("-n", f"{self._name}-hub", "link", "set", f"to{number}", "nomaster")

    def join(self, number: int) -> None:
        """Connect a spoke, or reconnect it if it was cut off."""
        ip("-n", f"{self._name}-hub", "link", "set", f"to{number}", "master", "eth0", "up")

    def close(self) -> None:
        """Delete the existing namespaces; processes still running in one keep it without its name."""
        for space in [*map(str, range(self._count)), "hub"]:
            subprocess.run(
                ["ip", "netns", "delete", f"{self._name}-{space}"], capture_output=True, check=False
            )
