"""Builds whose workers take GPUs from Ray, which only counts them as told and needs no real ones."""

import logging
from pathlib import Path
from typing import Any

import pytest

from linker.base.errors import InputError, LinkerError
from linker.engine.options import BuildOptions
from linker.engine.scaleout.cluster import workers
from tests.engine.scaleout.encoders import GpuEncoder, used
from tests.engine.scaleout.support import build
from tests.faults.support import content
from tests.helpers import HashEncoder, linker, write_corpus

torch = pytest.importorskip("torch")
NO_GPU = "PyTorch sees no GPU in Ray's workers"


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


@pytest.mark.parametrize(("gpus", "reason"), [(1.5, "fraction of one"), (float("nan"), "fraction of one")])
def test_what_ray_cannot_count(gpus: float, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        BuildOptions(encoder="minilm", engine="ray", worker_gpus=gpus)


@pytest.mark.parametrize("options", [("--encoder", "minilm"), ("--engine", "ray")])
def test_workers_that_do_not_encode_need_no_gpu(tmp_path: Path, options: tuple[str, str]) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", 5)
    done = linker("index", "build", corpus, "--out", tmp_path / "i", "--worker-gpus", "1", *options, check=1)
    assert "set --engine to ray, and give an --encoder" in done.stderr
    assert not (tmp_path / "i").exists()
