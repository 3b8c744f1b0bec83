"""The image: its Dockerfile, and its steps executed without Docker on an overlay of this machine's root."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from linker.server.running import API_GRACE
from tests.deploy import dockerfile
from tests.helpers import ROOT

LIMIT = 600
STAGES = dockerfile.read((ROOT / "Dockerfile").read_text(encoding="utf-8"))
BUILD, IMAGE = STAGES


def runs(stage: dockerfile.Stage) -> str:
    return "\n".join(step.text for step in stage.steps if step.name == "RUN")


def pins(name: str) -> set[tuple[str, str]]:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    return {(m[1], m[2]) for m in re.finditer(r"^([a-z0-9.-]+)==(\S+)", text, re.MULTILINE)}


def test_the_image_runs_as_a_user_of_its_own_and_is_asked_how_it_is() -> None:
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", IMAGE.last("USER").text)
    names = [step.name for step in IMAGE.steps]
    assert names.index("USER") > max(i for i, name in enumerate(names) if name in ("RUN", "COPY"))
    assert "/health" in IMAGE.last("HEALTHCHECK").text
    assert IMAGE.last("ENTRYPOINT").words == ["linker"]
    assert "--token-file" in IMAGE.last("CMD").words


def test_whatever_is_installed_has_a_pin_and_a_hash() -> None:
    installing = [
        line for line in re.split(r"&&|\n", runs(BUILD)) if re.search(r"\b(install|build) -q", line)
    ]
    assert len(installing) == 4
    for line in installing:
        assert "--require-hashes" in line or line.rstrip().endswith("--no-deps /wheels/*.whl")
    assert not re.search("apt-get|curl|wget|pip|uv ", runs(IMAGE))
    assert not [step for stage in STAGES for step in stage.steps if step.name == "ADD"]
    assert all(not base.endswith(":latest") and ":" in base for base in (BUILD.base, IMAGE.base))


def test_the_pins_are_those_of_the_tests() -> None:
    assert pins("serve") | pins("build") <= pins("dev")
    names = {name for name, _ in pins("serve")}
    assert {"fastapi", "faiss-cpu", "onnxruntime", "elasticsearch", "lightgbm"} <= names
    assert "torch" not in names


def test_what_is_copied_is_sent_to_the_build_and_nothing_else_is() -> None:
    copied = [step.words[:-1] for step in BUILD.steps if step.name == "COPY"]
    for source in (source for sources in copied for source in sources):
        assert (ROOT / source).exists()
        assert dockerfile.is_sent(ROOT, f"{source}/x.py" if (ROOT / source).is_dir() else source)
    for path in (
        ".env",
        ".git/config",
        "tests/helpers.py",
        "requirements/dev.txt",
        "linker/x/__pycache__/a.pyc",
    ):
        assert not dockerfile.is_sent(ROOT, path)
    assert not dockerfile.is_sent(ROOT, "indexes/kernels/_postings.so")


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Any], Path]]:
    """The report of the session in the container, and the files that its steps wrote."""
    if os.geteuid() != 0:
        pytest.skip("executing a Dockerfile without Docker mounts an overlay, which needs root")
    work = tmp_path_factory.mktemp("image")
    _require_network(work)
    health = shlex.join(json.loads(IMAGE.last("HEALTHCHECK").text.partition("CMD ")[2]))
    command = [*IMAGE.last("ENTRYPOINT").words, *IMAGE.last("CMD").words]
    session = (Path(__file__).parent / "session.sh").read_text(encoding="utf-8")
    builder = ["unshare", "--mount", sys.executable, "-m", "tests.deploy.dockerfile"]
    done = subprocess.run(
        [*builder, str(ROOT / "Dockerfile"), str(ROOT), str(work),
         "env", f"HEALTH={health}", "sh", "-c", session, "sh", *command],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=800,
    )  # fmt: skip
    if done.returncode and "mount: " in done.stderr and not os.environ.get("CI"):
        pytest.skip(f"no overlay can be mounted here: {done.stderr.strip().splitlines()[0]}")
    assert done.returncode == 0, done.stderr[-3000:]
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    yield report, work / "stage1" / "upper"
    shutil.rmtree(work)


def _require_network(work: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes", "-d"]
    requirements = str(ROOT / "requirements" / "build.txt")
    done = subprocess.run(
        [*command, str(work / "pip"), "-r", requirements], capture_output=True, text=True, check=False
    )
    if done.returncode and not os.environ.get("CI"):
        pytest.skip("the steps of the Dockerfile download packages, and there is no network")


@pytest.mark.slow
def test_the_steps_make_a_small_service_that_answers_and_writes_only_where_it_may(
    executed: tuple[dict[str, Any], Path],
) -> None:
    report, _ = executed
    assert report["search"] == ["a"]
    assert report["stranger"] == 401
    assert report["uid"] == int(IMAGE.last("USER").text.partition(":")[0])
    report, _ = executed
    refused = "Read-only file system"
    assert (report["/opt/linker/x"], report["/etc/x"]) == (refused, refused)
    assert (report["/data/x"], report["/tmp/x"]) == ("written", "written")
    environment = executed[1] / "opt" / "linker"
    size = dockerfile.megabytes(environment)
    print(f"the environment takes {size:.0f} MB")
    assert 100 < size <= LIMIT - dockerfile.BASE
    assert not [*environment.glob("lib/python*/site-packages/torch")]


def test_the_grace_of_the_server_fits_into_that_of_whoever_ends_it() -> None:
    yaml = pytest.importorskip("yaml")
    service = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]["linker"]
    assert int(service["stop_grace_period"].removesuffix("s")) > API_GRACE
    unit = (ROOT / "deploy" / "linker.service").read_text(encoding="utf-8")
    stop = re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert stop
    assert int(stop[1]) > API_GRACE
