"""A build whose texts are encoded by Ray's workers: the same index as a local one, whatever dies on the way."""

import functools
import ipaddress
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
import psutil
import pytest

from indexes.store import manifest as manifests
from linker.base.errors import InputError, LinkerError
from linker.engine import intake
from linker.engine.scaleout import encoded
from tests.engine.scaleout.encoders import DyingEncoder
from tests.engine.scaleout.support import OPTIONS, build
from tests.faults.support import assert_tidy, content
from tests.helpers import HashEncoder, linker, write_corpus

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ray")]


@pytest.fixture(scope="module")
def local(corpora: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("local") / "i"
    build(corpora, out, HashEncoder(), engine="local")
    expected = content(out)
    assert expected["manifest"][:2] == (630 - 12, 12)
    return expected


def test_a_reader_that_is_killed_reads_again(corpora: list[Path], tmp_path: Path) -> None:
    encoder, died = HashEncoder(), tmp_path / "died"
    expected = list(intake._texts(corpora, OPTIONS, 100))
    texts = functools.partial(reading, corpora, died)
    empty, *found = encoded(texts, HashEncoder, encoder)
    assert died.exists()
    assert empty.shape == (0, 16)
    assert [v.tolist() for v in found] == [encoder.encode(t).tolist() for t in expected]


def reading(corpora: Sequence[Path], died: Path) -> Iterator[Sequence[str]]:
    yield []
    for number, batch in enumerate(intake._texts(corpora, OPTIONS, 100)):
        if number == 6 and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield batch


def test_ray_resumes_a_local_build_and_replaces_a_killed_worker(
    corpora: list[Path], local: dict[str, Any], tmp_path: Path
) -> None:
    out, later = tmp_path / "i", local["documents"][400].full_text

    class Stops(HashEncoder):
        calls = 0

        def encode(self, texts: Sequence[str], **_: Any) -> npt.NDArray[Any]:
            self.calls += 1
            if self.calls > 9:
                raise InputError("enough")
            return super().encode(texts)

    with pytest.raises(InputError, match="enough"):
        build(corpora, out, Stops(), engine="local")
    assert 0 < manifests.load(out).build.position < 630
    build(corpora, out, DyingEncoder(later, tmp_path / "died"), engine="ray", resume=True)
    assert (tmp_path / "died").exists()
    assert content(out) == local
    assert_tidy(out)


@pytest.fixture
def one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start one worker, since each takes seconds to start."""
    monkeypatch.setattr("linker.engine.scaleout.encoding.workers", lambda *_: 1)


@pytest.mark.usefixtures("one_worker")
def test_another_encoder_on_a_worker_is_refused() -> None:
    with pytest.raises(LinkerError, match=r"a worker failed.*install the same one on all machines"):
        list(encoded(lambda: iter([["a"]]), lambda: HashEncoder(8), HashEncoder(16)))


def test_a_gpu_that_ray_does_not_have_is_not_waited_for(corpora: list[Path], tmp_path: Path) -> None:
    with pytest.raises(
        LinkerError, match=r"`worker_gpus` 2: .* \(the most on one: 1\).*leave the option out"
    ):
        build(corpora, tmp_path / "i", HashEncoder(), engine="ray", worker_gpus=2)


@pytest.mark.usefixtures("one_worker")
def test_an_empty_corpus() -> None:
    assert list(encoded(lambda: iter([]), HashEncoder, HashEncoder())) == []


def test_ray_listens_on_this_machine_alone(ray: Any) -> None:
    assert ray.is_initialized()
    addresses = {
        ipaddress.ip_address(connection.laddr.ip.removeprefix("::ffff:"))
        for process in descendants()
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert addresses
    assert all(address.is_loopback for address in addresses), addresses


def descendants() -> list[psutil.Process]:
    return [p for p in psutil.Process().children(recursive=True) if p.is_running() and p.status() != "zombie"]


def test_the_command_needs_an_encoder(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", 5)
    done = linker("index", "build", corpus, "--out", tmp_path / "i", "--engine", "ray", check=1)
    assert "name an --encoder" in done.stderr
    assert not (tmp_path / "i").exists()
