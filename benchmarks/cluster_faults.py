"""What do clients lose or get wrong when one of a cluster's three nodes dies, is cut off, has a full disk or is slow?

`python -m benchmarks.cluster_faults [--only NAME --print] [--work FOLDER]` → benchmarks/results/cluster_faults.json.
Needs root, for network namespaces: each of three Elasticsearch nodes has one, and they are joined by a bridge. While
two threads add and delete documents by linker and two search, one node gets a fault; then the fault ends. In the
partition, additional clients talk only to the node that is cut off. At the end all documents are read and compared
with the acknowledged writes, and so is each search (`benchmarks.support.cluster_judge`).
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from benchmarks.support import cluster_judge as judging
from benchmarks.support.cluster_clients import DIM, standing
from benchmarks.support.cluster_nodes import DISK, HEAP, NODES, Cluster, cluster
from benchmarks.support.common import parse_options, record
from indexes.address import Address
from indexes.cluster import RemoteWriter, open_remote
from indexes.store.records import BuildRecord, EncoderRecord, Manifest
from indexes.text.parameters import AnalysisSettings
from tests import elastic_server
from tests.fetching import NoServerError
from tests.namespaces import Network, NoNamespacesError

INSIDE = "LINKER_FAULTS_NETWORK"  # set in the process that runs in the network of the hub
QUIET, AFTER = 8.0, 15.0  # seconds before the fault, and after the cluster is whole again
SHORT, SHORT_AFTER = 6.0, 3.0  # with --short: seconds of a fault, and before it and after it
WHOLE = 240.0  # seconds that the cluster may take to be whole again
DUTY = (0.9, 0.1)  # how many seconds the slow node is paused, and then runs


@dataclass(frozen=True)
class Case:
    """A fault: what it does to node `n` and how it ends, and the index's numbers of shards and copies."""

    name: str
    begin: Callable[[Cluster, int], Any]
    end: Callable[[Cluster, int, Any], None]
    seconds: float
    shards: int = 3
    replicas: int = 1
    master: bool = False
    node: int | None = None  # the node with the small disk
    minority: bool = False  # whether some clients talk only to this node
    before: float = QUIET
    after: float = AFTER


def killed(c: Cluster, n: int) -> None:
    """Kill a node with SIGKILL."""
    c.nodes[n].kill()


def started(c: Cluster, n: int, _: Any) -> None:
    """Start a node again."""
    c.nodes[n].start(wait=False)


def cut(c: Cluster, n: int) -> None:
    """Cut a node off: packets to and from it are dropped."""
    c.network.cut(n)


def joined(c: Cluster, n: int, _: Any) -> None:
    """Connect a node again."""
    c.network.join(n)


def filled(c: Cluster, n: int) -> Path:
    """Fill the disk of a node to the last byte."""
    ballast = c.nodes[n].folder / "data" / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(bytes(1 << 16)):
            pass
    return ballast


def emptied(_: Cluster, __: int, ballast: Path) -> None:
    """Free the disk."""
    ballast.unlink()


def slowed(c: Cluster, n: int) -> tuple[threading.Event, threading.Thread]:
    """Pause a node for most of each second."""
    stop = threading.Event()

    def pulse() -> None:
        while not stop.is_set():
            c.nodes[n].signal(signal.SIGSTOP)
            time.sleep(DUTY[0])
            c.nodes[n].signal(signal.SIGCONT)
            stop.wait(DUTY[1])

    thread = threading.Thread(target=pulse)
    thread.start()
    return stop, thread


def quick(_: Cluster, __: int, going: tuple[threading.Event, threading.Thread]) -> None:
    """Resume a node."""
    going[0].set()
    going[1].join()


CASES = (
    Case("killed", killed, started, 30),
    Case("cut off", cut, joined, 90, master=True, minority=True),
    Case("cut off, a copy on each node", cut, joined, 90, 1, 2, master=True, minority=True),
    Case("disk full", filled, emptied, 60, node=NODES - 1),
    Case("slow", slowed, quick, 40),
)


def build(address: str, case: Case) -> None:
    """Build the index with the standing documents, as `linker index build` does."""
    where = Address.of(address)
    assert where
    encoder = EncoderRecord("elsewhere", "", DIM)
    manifest = Manifest(
        vectors="elastic-flat", encoder=encoder, analysis=AnalysisSettings("none"), build=BuildRecord(complete=False)
    )  # fmt: skip
    documents, vectors = standing()
    with RemoteWriter.begin(where, manifest, case.shards, case.replicas) as writer:
        writer.add(documents, vectors)
        writer.commit(BuildRecord())


@contextlib.contextmanager
def clients(
    c: Cluster, folder: Path, address: str, name: str, *inside: str
) -> Iterator[subprocess.Popen[str]]:
    """Run two writers and two readers until the end of the block; raise if they write anything to stderr."""
    clients = "benchmarks.support.cluster_clients"
    command = [*inside, sys.executable, "-m", clients, address, str(folder), name]
    process = subprocess.Popen([*command, "2", "2"], stderr=subprocess.PIPE, text=True)
    try:
        while not (folder / f"turn-{name}w1").exists() and process.poll() is None:
            time.sleep(0.2)
        yield process
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=WHOLE)
        if said or process.returncode:
            raise SystemExit(f"a client ended with {process.returncode}: {said}")
    finally:
        process.kill()


def events(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the clients' logged events."""
    return [orjson.loads(line) for line in (folder / f"{name}.jsonl").read_bytes().splitlines()]


def run(c: Cluster, case: Case) -> dict[str, Any]:
    """Return the effects of a fault on the clients and the index."""
    name = "faults-" + "-".join(case.name.replace(",", "").split())
    folder = c.folder / name
    folder.mkdir()
    build(c.address(name), case)
    n = c.holder(name, master=case.master) if case.node is None else case.node
    with contextlib.ExitStack() as stack:
        stack.enter_context(clients(c, folder, c.address(name), "all"))
        if case.minority:
            inside = c.network.inside(n)
            stack.enter_context(clients(c, folder, c.address(name, [n]), "cut", *inside))
        time.sleep(case.before)
        begin = time.monotonic()
        state = case.begin(c, n)
        time.sleep(case.seconds)
        end = time.monotonic()
        case.end(c, n, state)
        whole = c.wait(WHOLE)
        time.sleep(case.after)
        last = time.monotonic()
    c.wait(WHOLE)
    found = {
        "seconds": case.seconds,
        "shards": case.shards,
        "replicas": case.replicas,
        "whole_again_s": whole,
    }
    return found | judged(c, case, folder, begin, end, last)


def judged(c: Cluster, case: Case, folder: Path, begin: float, end: float, last: float) -> dict[str, Any]:
    """Return the outcomes of the calls, and the errors found."""
    logs = {file.stem: events(folder, file.stem) for file in folder.glob("*.jsonl")}
    every = [event for log in logs.values() for event in log]
    known = judging.lives(every)
    where = Address.of(c.address(folder.name))
    assert where
    collection = open_remote(where)
    collection.index.refresh()
    final = {d.id: d.text for d in collection.matching()}
    outcomes: dict[str, Any] = {"end": judging.left_over(final, known), "errors": judging.errors(every)}
    for who, log in logs.items():
        wrong = judging.wrong(log, known)
        sides: dict[str, Any] = {"wrong": len(wrong)}
        if wrong:
            sides["wrong_from_s"] = round(min(e["begin"] for e, _ in wrong) - begin, 1)
            sides["wrong_until_s"] = round(max(e["end"] for e, _ in wrong) - begin, 1)
            sides["wrong_about"] = {
                k: sum(w[k] for _, w in wrong if k in w) for k in wrong[0][1] | {"missing": 0}
            }
            print(who, *wrong[:5], sep="\n  ", file=sys.stderr)
        for kind, of in (("searches", ("search",)), ("writes", ("add", "delete"))):
            chosen = [e for e in log if e["kind"] in of]
            sides[kind] = {
                "before": judging.calls(chosen, begin - case.before, begin),
                "fault": judging.calls(chosen, begin, end),
                "after": judging.calls(chosen, end, last),
            }
        outcomes[who] = sides
    return outcomes


def inside(options: argparse.Namespace) -> None:
    """Run the cases in the hub, and record the results."""
    found: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        folder = options.work or stack.enter_context(tempfile.TemporaryDirectory(prefix="cluster-faults-"))
        c = stack.enter_context(cluster(Network(NODES, os.environ[INSIDE]), Path(folder)))
        for case in CASES:
            if options.only in ("", case.name):
                # The master's death is the harder one.
                short = replace(case, seconds=SHORT, before=SHORT_AFTER, after=SHORT_AFTER, master=True)
                found[case.name] = run(c, short if options.short else case)
                print(case.name, json.dumps(found[case.name], indent=1), file=sys.stderr, flush=True)
    if options.print:
        print(json.dumps(found))
    else:
        record("cluster_faults", {"heap": HEAP, "disk_mib": DISK, "cases": found}, 0)


def main() -> None:
    options = parse_options(
        __doc__,
        only=("", "one case; needs --print"),
        work=(Path | None, "an empty folder for the clients' logs, kept"),
        short=(False, "a few seconds of each; needs --print"),
        print=(False, "write to stdout, and record nothing"),
    )
    if (options.only or options.short) and not options.print:
        sys.exit("error: --only and --short record nothing: give --print, too")
    if INSIDE in os.environ:
        inside(options)
        return
    try:
        elastic_server.wanted()
        with Network(NODES) as network:
            command = [
                *network.inside("hub"),
                sys.executable,
                "-m",
                "benchmarks.cluster_faults",
                *sys.argv[1:],
            ]
            done = subprocess.run(command, env={**os.environ, INSIDE: network.name}, check=False)
    except (NoNamespacesError, NoServerError) as e:
        sys.exit(f"error: {e}")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
