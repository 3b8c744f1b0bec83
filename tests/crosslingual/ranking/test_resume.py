"""`auto` and `cascade` resume after a kill and write the same run, byte for byte."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from indexes.dtypes import AnyArray
from linker.base.errors import InputError
from linker.crosslingual.scoring.stages import OWNER, Stages, digest
from tests.crosslingual.synthetic import twin, write_pages
from tests.helpers import linker

pytestmark = pytest.mark.usefixtures("divided_once")
KNOWN = 40
# The command in a process of its own, which divides the links once, as `divided_once` does here.
COMMAND = "from linker.cli import main; from linker.crosslingual.ranking import folds; folds.MOST = 1; main()"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("resume")
    corpus = twin(pages=80)
    for name, pages in (("ours", corpus.source), ("theirs", corpus.target)):
        write_pages(folder / f"{name}.jsonl", pages)
    gold = [f"{s} 0 {t} 1\n" for s, t in list(corpus.gold().items())[:KNOWN]]
    (folder / "train.txt").write_text("".join(gold), encoding="utf-8")
    return folder


def arguments(folder: Path, method: str, run: Path) -> list[str]:
    pages = str(folder / "ours.jsonl"), str(folder / "theirs.jsonl")
    return ["link", *pages, "--method", method, "--train", str(folder / "train.txt"), "--out", str(run)]


@pytest.mark.parametrize("method", ["auto", "cascade"])
def test_a_killed_run_goes_on_and_ends_alike(folder: Path, method: str) -> None:
    whole, killed = folder / f"{method}.whole.run", folder / f"{method}.killed.run"
    linker(*arguments(folder, method, whole))
    part = Path(f"{killed}.part")
    command = [sys.executable, "-c", COMMAND, *arguments(folder, method, killed)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as child:
        while child.poll() is None and len(list(part.glob("lists-*.npz"))) < 2:
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL and not killed.exists()
    held = {path: path.read_bytes() for path in part.iterdir()}
    linker(*arguments(folder, method, killed), "--resume")
    assert killed.read_bytes() == whole.read_bytes()
    assert Path(f"{killed}.json").read_bytes() == Path(f"{whole}.json").read_bytes()
    assert not part.exists()
    if method == "cascade":
        return  # it remembers its stages as `auto` does
    # The resumed run used the saved results: with a different result in them, the run ends differently.
    part.mkdir()
    for path, content in held.items():
        path.write_bytes(content)
    for path in part.glob("lists-*.npz"):
        with np.load(path) as stage:
            arrays = dict(stage)
        arrays["features0"] = arrays["features0"][:, ::-1]
        np.savez(path, **arrays)
    linker(*arguments(folder, method, killed), "--resume")
    assert killed.read_bytes() != whole.read_bytes()


def test_stages_are_computed_once_and_belong_to_one_task(tmp_path: Path) -> None:
    made: list[int] = []

    def make() -> dict[str, np.ndarray]:
        made.append(1)
        return {"a": np.arange(3)}

    folder = tmp_path / "run.part"
    for _ in range(2):
        assert Stages(folder, "x", resume=True).remember("one", make)["a"].tolist() == [0, 1, 2]
    assert len(made) == 1
    with pytest.raises(InputError, match="another task"):
        Stages(folder, "y", resume=True).remember("one", make)
    (folder / "one.npz").write_bytes(b"PK")
    with pytest.raises(InputError, match="damaged"):
        Stages(folder, "x", resume=True).remember("one", make)
    Stages(folder, "y").remember("two", make)  # without resuming, it starts over
    assert sorted(path.name for path in folder.iterdir()) == [OWNER, "two.npz"]
    assert len(made) == 2


def test_names_of_stages_differ_by_type_shape_and_content() -> None:
    arrays: list[AnyArray] = [
        np.zeros(4, np.int64), np.zeros((2, 2), np.int64), np.zeros(4, np.int32), np.ones(4, np.int64),
    ]  # fmt: skip
    assert len({digest(a) for a in arrays}) == 4
    assert digest(arrays[0], arrays[1]) != digest(arrays[1], arrays[0])
