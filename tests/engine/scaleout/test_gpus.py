"""Builds whose workers take GPUs from Ray, which only counts them as told and needs no real ones."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from linker.base.errors import InputError, LinkerError
from linker.engine.options import BuildOptions
from linker.engine.scaleout.cluster import workers
from tests.contract.cluster import addresses
from tests.engine.scaleout.encoders import GpuEncoder
from tests.engine.scaleout.support import build
from tests.engine.scaleout.support import content as content_on_cluster
from tests.faults.support import content
from tests.helpers import HashEncoder, linker, write_corpus

torch = pytest.importorskip("torch")
NO_GPU = "PyTorch sees no GPU in Ray's workers"


@pytest.fixture(scope="module")
def address(elastic: str) -> Iterator[Callable[[], str]]:
    with addresses(elastic, "gpus") as new:
        yield new


def used(folder: Path) -> tuple[set[str], set[str]]:
    """Return the numbers of the batches' GPUs, and the processes that encoded them."""
    names = [path.name.split("-") for path in folder.iterdir()]
    return {gpus for _, gpus, _ in names}, {pid for *_, pid in names}


@pytest.mark.slow
def test_a_worker_for_each_cpu_and_its_part_of_a_gpu(ray: Any) -> None:
    assert [workers(ray, gpus) for gpus in (0, 1, 0.5, 0.4, 0.1)] == [2, 1, 2, 2, 2]
    with pytest.raises(LinkerError, match=r"`worker_gpus` 2: .* \(the most on one: 1\).*--num-gpus"):
        workers(ray, 2)


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_vectors_made_on_a_gpu(corpora: list[Path], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    batches = tmp_path / "batches"
    batches.mkdir()
    with caplog.at_level(logging.WARNING, "linker"):
        build(corpora, tmp_path / "gpu", GpuEncoder(batches), engine="ray", worker_gpus=1)
    build(corpora, tmp_path / "local", HashEncoder(), engine="local")
    assert content(tmp_path / "gpu") == content(tmp_path / "local")
    gpus, processes = used(batches)
    assert gpus == {"0"}
    assert len(processes) == 1
    assert (NO_GPU in caplog.text) is not torch.cuda.is_available()


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_two_workers_that_write_share_a_gpu_and_keep_their_encoder(
    corpora: list[Path], address: Callable[[], str], tmp_path: Path
) -> None:
    many, one = address(), address()
    build(corpora, many, GpuEncoder(tmp_path), engine="ray", vectors="flat", worker_gpus=0.5)
    build(corpora, one, HashEncoder(), engine="local", vectors="flat")
    assert content_on_cluster(many) == content_on_cluster(one)
    gpus, processes = used(tmp_path)
    assert gpus == {"0"}
    assert len(processes) <= 4 < len(list(tmp_path.iterdir()))


@pytest.mark.parametrize(("gpus", "reason"), [(1.5, "fraction of one"), (float("nan"), "fraction of one")])
def test_what_ray_cannot_count(gpus: float, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        BuildOptions(encoder="minilm", engine="ray", worker_gpus=gpus)


@pytest.mark.parametrize("options", [("--encoder", "minilm"), ("--engine", "ray")])
def test_workers_that_do_not_encode_need_no_gpu(tmp_path: Path, options: tuple[str, str]) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", 5)
    done = linker("index", "build", corpus, "--out", tmp_path / "i", "--worker-gpus", "1", *options, check=1)
    assert "give --engine ray and an --encoder, too" in done.stderr
    assert not (tmp_path / "i").exists()
