"""A distributed build on two Ray machines, one of which is cut off and killed midway: nothing is lost."""

import os
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from indexes.address import Address
from indexes.cluster import drop
from indexes.cluster.index import new_name
from tests.engine.scaleout.encoders import CountingEncoder
from tests.engine.scaleout.namespaces import Machine, machines, reachable
from tests.engine.scaleout.support import build, content
from tests.helpers import ROOT, HashEncoder

pytestmark = pytest.mark.slow
# A silent machine is given up after seconds instead of minutes.
WATCH = {
    "health_check_period_ms": "1000", "health_check_timeout_ms": "1000", "health_check_failure_threshold": "3",
    "grpc_client_keepalive_time_ms": "5000", "grpc_client_keepalive_timeout_ms": "5000",
    "worker_niceness": "0",
}  # fmt: skip
TRIES = 5


def start(machine: Machine, head: Machine, folder: str, environment: dict[str, str]) -> None:
    """Start Ray on a machine, and wait until it responds; Ray's own timeout of some seconds may be too short."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus", "1"]
    command += ["--object-store-memory", "80000000", "--node-ip-address", machine.address]
    for number in range(TRIES):
        how = ["--address", f"{head.address}:6379"]
        if machine is head:
            how = [
                "--head", "--port", "6379", "--include-dashboard", "false", "--temp-dir",
                f"{folder}/{number}",
            ]  # fmt: skip
        log = Path(folder, f"{machine.name}-{number}.log")
        with log.open("wb") as file:
            process = machine.run([*command, *how], stdout=file, stderr=file, env=environment, cwd=ROOT)
        while process.poll() is None:
            if b"Ray runtime started" in log.read_bytes():
                return
            time.sleep(0.1)
        machine.kill()
    raise AssertionError(log.read_text())


def test_a_machine_that_dies_midway_loses_nothing(elastic: str, corpora: list[Path], tmp_path: Path) -> None:
    encoder = CountingEncoder(tmp_path)
    encoder.pause.touch()
    name = new_name("nodes")
    with (
        tempfile.TemporaryDirectory(prefix="ray-") as folder,  # a socket's path may have 107 bytes
        machines(2) as (gateway, (head, other)),
        reachable(gateway, urlsplit(elastic).port or 0) as port,
    ):
        # linker disables Ray's clusters in a process that starts its own Ray, as earlier tests did in this one.
        alone = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
        environment = {key: value for key, value in os.environ.items() if key != alone}
        environment |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token"}
        environment["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        environment |= {f"RAY_{key}": value for key, value in WATCH.items()}
        for machine in (head, other):
            start(machine, head, folder, environment)
        where = f"elastic+http://{gateway}:{port}/{name}"
        driver = head.run(
            [
                sys.executable, "-m", "tests.engine.scaleout.driver", str(tmp_path), where, "begin",
                *map(str, corpora),
            ],
            stdout=subprocess.PIPE,
            env={**environment, "RAY_ADDRESS": f"{head.address}:6379"},
            cwd=ROOT,
        )  # fmt: skip

        def encoded_by(machine: Machine) -> int:
            pids = machine.pids
            return sum(int(file.name.rpartition("-")[2]) in pids for file in tmp_path.iterdir())

        while not (encoded_by(head) >= 2 and encoded_by(other) >= 2):
            encoder.wait(encoder.batches + 1, driver)
        other.die()
        encoder.pause.unlink()
        out, _ = driver.communicate(timeout=300)
        assert out.split()[-2:] == ["618", "False"]
    many, one = f"elastic+{elastic}/{name}", f"elastic+{elastic}/{name}-one"
    build(corpora, one, HashEncoder(), engine="local", vectors="flat")
    try:
        assert content(many) == content(one)
    finally:
        for address in map(Address.of, (many, one)):
            assert address
            drop(address)
