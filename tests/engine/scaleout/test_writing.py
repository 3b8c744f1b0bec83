"""A build on a cluster with Ray workers that encode and send: equal to a one-process build, whatever dies."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from indexes.address import Address
from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex
from linker.base.errors import LinkerError
from tests.contract.cluster import addresses
from tests.engine.scaleout.encoders import ChangingEncoder, CountingEncoder, FailingEncoder, GpuEncoder, used
from tests.engine.scaleout.support import build, content
from tests.helpers import ROOT, HashEncoder

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ray")]


@pytest.fixture(scope="module")
def address(elastic: str) -> Iterator[Callable[[], str]]:
    with addresses(elastic, "many") as new:
        yield new


@pytest.fixture(scope="module")
def local(corpora: list[Path], address: Callable[[], str]) -> dict[str, Any]:
    """The full content of an index built by one process."""
    where = address()
    build(corpora, where, HashEncoder(), engine="local", vectors="flat")
    expected = content(where)
    assert len(expected["documents"]) == 630 - 12
    assert len(expected["quarantine"]) == 12
    return expected


def test_without_an_encoder_too(corpora: list[Path], address: Callable[[], str]) -> None:
    one, many = address(), address()
    build(corpora, one, None, engine="local")
    build(corpora, many, None, engine="ray")
    assert content(many) == content(one)


def test_workers_that_are_killed_from_outside_while_they_write(
    corpora: list[Path], local: dict[str, Any], address: Callable[[], str], tmp_path: Path
) -> None:
    where, encoder = address(), CountingEncoder(tmp_path)

    def kill() -> None:
        for batches in (3, 8, 13):
            encoder.wait(batches)
            pid = int(max(tmp_path.iterdir()).name.rpartition("-")[2])
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    report = build(corpora, where, encoder, engine="ray", vectors="flat")
    killer.join()
    assert (report.documents, report.added, report.quarantined) == (618, 618, 12)
    assert content(where) == local


def test_what_a_worker_cannot_do_is_told_and_the_build_goes_on_without_ray(
    corpora: list[Path], local: dict[str, Any], address: Callable[[], str]
) -> None:
    where = address()
    with pytest.raises(LinkerError, match=r"a worker failed: .*no room for a batch"):
        build(corpora, where, FailingEncoder(), engine="ray", vectors="flat")
    with pytest.raises(LinkerError, match=r"a worker failed: .*install the same one on all machines"):
        build(corpora, where, ChangingEncoder(), engine="ray", vectors="flat", resume=True)
    build(corpora, where, HashEncoder(), engine="local", vectors="flat", resume=True)
    assert content(where) == local


def test_servers_that_answer_429_are_waited_for_by_two_workers_that_share_a_gpu(
    corpora: list[Path], local: dict[str, Any], address: Callable[[], str], tmp_path: Path
) -> None:
    """Elasticsearch answers this while an index must not grow, for example if a disk is nearly full."""
    where, encoder = address(), GpuEncoder(tmp_path)
    named = Address.of(where)
    assert named
    store = ClusterIndex(ElasticSettings.of(named), f"{named.name}-g000001")
    seen, answers = list[int](), set[int]()

    def block(*, on: bool) -> None:
        store.client.indices.put_settings(
            index=store.name, settings={"index.blocks.read_only_allow_delete": on or None}
        )

    def refuse() -> None:
        encoder.wait(3)
        block(on=True)
        seen.append(encoder.batches)
        time.sleep(1)
        seen.append(encoder.batches)
        answers.update(
            outcome.status for outcome in store._send([b'{"index":{"_id":"x"}}', b"{}"], store.name)
        )
        block(on=False)

    server = threading.Thread(target=refuse)
    server.start()
    build(corpora, where, encoder, engine="ray", vectors="flat", worker_gpus=0.5)
    server.join()
    store.close()
    gpus, processes = used(tmp_path)
    assert gpus == {"0"}
    assert len(processes) <= 4 < encoder.batches
    assert answers == {429}
    assert seen[1] - seen[0] <= 2  # each of two workers waits with one batch, and neither goes on
    assert content(where) == local


def test_a_driver_that_is_interrupted_or_killed_is_resumed(
    ray: Any, corpora: list[Path], local: dict[str, Any], address: Callable[[], str], tmp_path: Path
) -> None:
    where, encoder = address(), CountingEncoder(tmp_path)
    environment = {**os.environ, "RAY_ADDRESS": ray.get_runtime_context().gcs_address}

    def drive(how: str) -> subprocess.Popen[str]:
        command = [
            sys.executable, "-m", "tests.engine.scaleout.driver", str(tmp_path), where, how,
            *map(str, corpora),
        ]  # fmt: skip
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)

    first = drive("begin")
    encoder.wait(8, first)
    first.send_signal(signal.SIGINT)
    out, _ = first.communicate(timeout=300)
    added, interrupted = out.split()[-2:]
    assert interrupted == "True"
    assert 200 < int(added) < 600
    second = drive("resume")
    encoder.wait(encoder.batches + 4, second)
    second.kill()
    second.communicate()
    build(corpora, where, HashEncoder(), engine="ray", vectors="flat", resume=True)
    assert content(where) == local
