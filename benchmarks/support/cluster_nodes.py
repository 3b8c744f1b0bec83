"""Three Elasticsearch nodes in their own network namespaces, for the fault benchmark."""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import elastic_server
from tests.elastic_server import Node
from tests.namespaces import Network

NODES, PORT, HEAP = 3, 9200, "-Xms320m -Xmx320m -XX:TieredStopAtLevel=1"
DISK = 160  # size of the last node's disk in MiB


@dataclass
class Cluster:
    """Three nodes, each in its own namespace."""

    network: Network
    nodes: list[Node]
    folder: Path

    def address(self, name: str, numbers: list[int] | None = None) -> str:
        """Return the address of an index, reached through all nodes or only some of them."""
        hosts = [f"{self.nodes[n].host}:{PORT}" for n in numbers or range(NODES)]
        return f"elastic+http://{','.join(hosts)}/{name}"

    def ask(self, path: str, but: int | None = None) -> Any:
        """Return the response of a node other than `but`."""
        return self.nodes[0 if but != 0 else 1].get(path)

    def holder(self, name: str, *, master: bool) -> int:
        """Return the number of a node with a primary shard that is (or is not) the master, if there is one."""
        shards = self.ask(f"/_cat/shards/{name}-g*?format=json")
        primaries = sorted({int(s["node"][-1]) for s in shards if s["prirep"] == "p"})
        leader = int(self.ask("/_cat/master?format=json")[0]["node"][-1])
        return next((n for n in primaries if (n == leader) is master), primaries[0])

    def wait(self, seconds: float) -> float | None:
        """Wait until all nodes and copies are up; return the seconds this took, None if it took too long."""
        begin = time.monotonic()
        while time.monotonic() - begin < seconds:
            with contextlib.suppress(OSError, ValueError):
                health = self.ask("/_cluster/health")
                if health["status"] == "green" and health["number_of_nodes"] == NODES:
                    return round(time.monotonic() - begin, 1)
            time.sleep(0.5)
        return None


@contextlib.contextmanager
def cluster(network: Network, disk: Path) -> Iterator[Cluster]:
    """Start three nodes; the last one's data is on its own small disk."""
    with elastic_server.folder() as folder, contextlib.ExitStack() as stack:
        common = {
            "cluster.name": folder.name,
            "discovery.seed_hosts": [f"{network.address(n)}:9300" for n in range(NODES)],
            "cluster.initial_master_nodes": [f"node{n}" for n in range(NODES)],
            "transport.port": 9300,
            "cluster.routing.allocation.disk.threshold_enabled": True,
            # The other nodes share the disk of this machine, however full that is.
            "cluster.routing.allocation.disk.watermark.low": "96%",
            "cluster.routing.allocation.disk.watermark.high": "97%",
            "cluster.routing.allocation.disk.watermark.flood_stage": "98%",
        }
        nodes = [
            Node(
                folder / f"node{n}", PORT, common, {"ES_JAVA_OPTS": f"{HEAP} {elastic_server.QUICK}"},
                host=network.address(n), inside=network.inside(n),
            )
            for n in range(NODES)
        ]  # fmt: skip
        small_disk(nodes[-1].folder / "data", stack)
        for node in nodes:
            stack.callback(node.stop)
            node.start(wait=False)
        for node in nodes:
            node.wait("green")
        yield Cluster(network, nodes, disk)


def small_disk(folder: Path, stack: contextlib.ExitStack) -> None:
    """Mount a disk of DISK MiB in memory, until the stack is closed."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}m", "tmpfs", folder], check=True)
    stack.callback(lambda: subprocess.run(["umount", "-l", folder], check=True))
