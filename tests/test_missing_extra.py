"""The distribution is complete and has one name; a command whose library is missing names the extra."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

from indexes.errors import DISTRIBUTION, MissingExtraError, install
from linker.base.errors import DISTRIBUTIONS, OURS, extra_of, requirements
from linker.cli import app
from linker.cli.registry import every
from tests import bare
from tests.helpers import ROOT, linker

COMMANDS = (
    "similarity train pairs --out model", "similarity predict model pairs", "sts train pairs --out model",
    "sts predict model pairs", "sts evaluate model pairs",
)  # fmt: skip
# In a separate process: modules imported without their library must not stay loaded.
WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[1].split(), None))
from linker.cli import main
for command in sys.argv[2:]:
    sys.argv = ["linker", *command.split()]
    try:
        main()
    except SystemExit as e:
        print(e.code)
"""


def modules() -> list[str]:
    """Return the import names of the packages that the extras install."""
    names = {p.replace("-", "_") for extra, packages in requirements().items() if extra for p in packages}
    return sorted(names | DISTRIBUTIONS.keys())


def test_a_command_without_its_library_names_the_extra(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, " ".join(modules()), *COMMANDS],
        capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120,
    )  # fmt: skip
    assert done.stdout.split() == ["1"] * len(COMMANDS), done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == len(COMMANDS)
    for line in lines:
        assert line.startswith("error: this command (")
        assert line.endswith(install("train"))


def test_ci_tries_every_command() -> None:
    assert every(app).keys() == bare.RUNS.keys(), "say in tests/bare.py with which arguments it runs"


def test_the_extras_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {"": project["dependencies"], **project["optional-dependencies"]}
    for extra in OURS:
        del wanted[extra]
    names = {extra: [re.split(r"[^\w.-]", line)[0] for line in lines] for extra, lines in wanted.items()}
    names = {extra: [name for name in found if name != DISTRIBUTION] for extra, found in names.items()}
    assert requirements() == {extra: found for extra, found in names.items() if found}


def test_a_module_has_its_extra() -> None:
    expected = {
        "torch.nn": "train", "faiss": "cpu", "sklearn": "entities", "transformers": "pretrained", "ir_datasets": "ir",
        "opensearchpy": "opensearch", "starlette": "serve", "opencc": "crosslingual", "numpy": None,
        "linker.cli.checking": None, "": None,
    }  # fmt: skip
    assert {module: extra_of(module) for module in expected} == expected
    assert all(extra_of(module) for module in DISTRIBUTIONS)


def test_without_metadata_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linker.base.errors.DISTRIBUTION", "no-such-distribution")
    assert requirements() == {}
    assert extra_of("torch") is None


def test_the_doctor_asks_the_server_that_the_index_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKER_ELASTIC_URL", "http://127.0.0.1:9, http://127.0.0.1:8")
    report = json.loads(linker("doctor", "--json").stdout)
    assert report["servers"]["elasticsearch"]["url"] == "http://127.0.0.1:9"
    assert report["extras"].keys() == requirements().keys() - {""}


def test_another_missing_module_is_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "linker.cli.checking", None)
    with pytest.raises(ModuleNotFoundError, match=r"linker\.cli\.checking"):
        linker("doctor")


EXEMPT = ("CHANGELOG.md", Path(__file__).relative_to(ROOT).as_posix())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def tracked() -> list[str]:
    """Return the files of the repository; skip the test if this is not one, for example in a source distribution."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("this is not a git repository")
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_the_name_is_one_everywhere() -> None:
    assert PROJECT["name"] == DISTRIBUTION
    assert install("train") in str(MissingExtraError("training", "train"))
    for name in tracked():
        if not name.endswith((".py", ".md", ".toml", ".txt", ".sh")) or name in EXEMPT:
            continue
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), start=1):
            wrong = re.search(r"(?<!star)linker\\*\[[a-z]|via linker|pip install '?linker\b", line)
            assert not wrong, f"{name}:{number}: {line}"
            spelled = (
                "pip install" in line
                and f"{DISTRIBUTION}[" in line
                and name.startswith(("linker/", "indexes/"))
            )
            assert not spelled, f"{name}:{number}: use MissingExtraError or indexes.errors.install"


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, f"pip install '{DISTRIBUTION}[train]'"),
        (
            '{"url": "file:///home/ana/linker", "dir_info": {}}',
            "pip install '.[train]' in linker's repository",
        ),
    ],
)
def test_an_extra_is_installed_by_name_only_from_a_package_index(
    origin: str | None, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    information = tmp_path / f"{DISTRIBUTION}-9.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: 9\n")
    if origin:
        (information / "direct_url.json").write_text(origin)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert install("train") == command


def test_what_is_not_installed_comes_from_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert install("train") == "pip install '.[train]' in linker's repository"


def test_no_merge_was_left_half_done() -> None:
    markers = tuple(7 * sign + " " for sign in "<>|")  # not spelt out, or this file would contain them
    for name in tracked():
        content = (ROOT / name).read_bytes()
        if b"\0" in content:
            continue
        lines = content.decode(errors="replace").splitlines()
        left = [f"{name}:{i}" for i, line in enumerate(lines, start=1) if line.startswith(markers)]
        assert left == []


def test_every_extra_exists() -> None:
    extras = set(PROJECT["optional-dependencies"])
    for path in [*(ROOT / "linker").rglob("*.py"), *(ROOT / "indexes").rglob("*.py")]:
        for extra in re.findall(r'MissingExtraError\([^)]*, "(\w+)"\)', path.read_text(encoding="utf-8")):
            assert extra in extras, f"{path}: {extra}"


def test_the_source_distribution_is_the_repository(tmp_path: Path) -> None:
    names = tracked()
    for name in names:
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / "tree" / name)
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", build], cwd=tmp_path / "tree", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    assert archive.name == f"{DISTRIBUTION}-{PROJECT['version']}.tar.gz"
    with tarfile.open(archive) as file:
        packed = {m.name.partition("/")[2] for m in file if m.isfile()}
    generated = {name for name in packed if name in ("PKG-INFO", "setup.cfg") or ".egg-info/" in name}
    assert packed - generated == set(names) - {"setup.cfg"}  # setuptools adds its own lines to that
    assert "setup.cfg" in packed


def test_the_page_on_installation_names_every_extra() -> None:
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    ours = set(PROJECT["optional-dependencies"]) - {"bench", "demo", "dev", "peers"}
    assert ours == set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", page, re.M)))) - {"extra"}
