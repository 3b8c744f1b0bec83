"""Parses a Dockerfile, and executes its steps without Docker: each stage is an overlay on this machine's root.

This machine, with the Python that runs this, stands in for the base images; only the additions of the steps are
tested. It needs root, and must run in a mount namespace of its own:

    unshare --mount python -m tests.deploy.dockerfile DOCKERFILE CONTEXT WORK COMMAND...

executes the steps, then COMMAND as the image would run: as its user, with its environment, on a read-only root where
only the volumes and /tmp can be written.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

BASE = 130  # megabytes of the slim base image, rounded up: it is not available without an image registry
PASSED = re.compile(r"(?i)(pip|uv|ssl|requests|curl)_.*|(https?|no|all)_proxy")


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction: its name and its arguments, with continuation lines joined."""

    name: str
    text: str

    @property
    def words(self) -> list[str]:
        """The words of the JSON form or of the shell form."""
        return json.loads(self.text) if self.text.startswith("[") else shlex.split(self.text)


@dataclass(slots=True)
class Stage:
    """One FROM with the steps up to the next."""

    base: str
    name: str
    steps: list[Step] = field(default_factory=list)

    def last(self, name: str) -> Step:
        """Return the last step of this name, which is the effective one."""
        return [step for step in self.steps if step.name == name][-1]


def read(text: str) -> list[Stage]:
    """Return the stages of a Dockerfile."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    stages: list[Stage] = []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        name, _, rest = line.strip().partition(" ")
        if name == "FROM":
            base, *alias = re.split(r"\s+AS\s+", rest.strip())
            stages.append(Stage(base, alias[0] if alias else ""))
        elif stages:
            stages[-1].steps.append(Step(name, rest.strip()))
    return stages


class Machine:
    """A stage during execution: its root, environment, folder and user."""

    def __init__(self, work: Path, name: str) -> None:
        self.upper, self.root = work / name / "upper", work / name / "root"
        for folder in (self.upper, self.root, work / name / "work"):
            folder.mkdir(parents=True)
        options = f"lowerdir=/,upperdir={self.upper},workdir={work / name / 'work'}"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, str(self.root)], check=True)
        for mounted in ("proc", "dev"):
            subprocess.run(["mount", "--rbind", f"/{mounted}", str(self.root / mounted)], check=True)
        for file in ("resolv.conf", "hosts"):
            shutil.copy(f"/etc/{file}", self.root / "etc" / file)
        python = Path(os.path.realpath(sys.executable))
        for parent in [*python.parents][:-1]:  # the Python of a base image is readable by every user
            (self.root / parent.relative_to("/")).chmod(0o755)
        command = self.root / "usr/local/bin/python"  # as in the base image; Debian's own is python3
        command.unlink(missing_ok=True)
        command.symlink_to(python)
        self.environment = {key: value for key, value in os.environ.items() if PASSED.fullmatch(key)}
        self.environment["PATH"] = (
            f"{python.parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        )
        self.environment["HOME"] = "/root"
        self.folder, self.user = "/", "0:0"

    def do(self, step: Step, stages: dict[str, Machine], context: Path) -> None:
        """Execute one step."""
        if step.name == "RUN":
            self.run(["/bin/sh", "-c", step.text])
        elif step.name == "COPY":
            self._copy(step.words, stages, context)
        elif step.name == "ENV":
            for assignment in shlex.split(re.sub(r"\$(\w+)", lambda m: self.environment[m[1]], step.text)):
                name, _, value = assignment.partition("=")
                self.environment[name] = value
        elif step.name == "WORKDIR":
            self.folder = step.text
            (self.root / step.text[1:]).mkdir(parents=True, exist_ok=True)
        elif step.name == "USER":
            self.user = step.text

    def run(self, command: list[str]) -> None:
        """Run a command in the stage. Raises CalledProcessError."""
        inside = ["chroot", f"--userspec={self.user}", str(self.root), "/usr/bin/env", "-C", self.folder]
        subprocess.run([*inside, *command], env=self.environment, check=True)

    def _copy(self, words: list[str], stages: dict[str, Machine], context: Path) -> None:
        options = [word for word in words if word.startswith("--")]
        *sources, target = [word for word in words if not word.startswith("--")]
        origin = stages[options[0].removeprefix("--from=")].root if options else context
        place = self.root / str(Path(self.folder) / target)[1:]
        for source in sources:
            found, into_folder = origin / source.lstrip("/"), target.endswith("/")
            if found.is_dir():
                ignore = None if options else ignored(context)
                shutil.copytree(found, place, symlinks=True, dirs_exist_ok=True, ignore=ignore)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.mkdir(exist_ok=True) if into_folder else None
                shutil.copy2(found, place)

    def freeze(self, volumes: list[str], work: Path) -> None:
        """Make the root read-only except for /tmp and for volumes, which keep their owner."""
        for number, volume in enumerate(volumes):
            inside = self.root / volume[1:]
            outside = work / f"volume{number}"
            shutil.copytree(inside, outside)
            state = inside.stat()
            os.chown(outside, state.st_uid, state.st_gid)
            subprocess.run(["mount", "--bind", str(outside), str(inside)], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(self.root / "tmp")], check=True)
        subprocess.run(["mount", "-o", "remount,ro", str(self.root)], check=True)


def ignored(context: Path):  # type: ignore[no-untyped-def]  # what shutil.copytree asks for has a private type
    """Return the names in a folder that the patterns `**/NAME` of .dockerignore exclude."""
    lines = (context / ".dockerignore").read_text(encoding="utf-8").splitlines()
    return shutil.ignore_patterns(*[line.removeprefix("**/") for line in lines if line.startswith("**/")])


def is_sent(context: Path, path: str) -> bool:
    """Return whether .dockerignore lets a file of the context reach the build; the last matching pattern decides."""
    sent = True
    for line in (context / ".dockerignore").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!")
        parts = path.split("/")
        heads = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
        anywhere = pattern.startswith("**/") and any(fnmatch.fnmatch(p, pattern[3:]) for p in parts)
        if anywhere or any(fnmatch.fnmatch(head, pattern) for head in heads):
            sent = line.startswith("!")
    return sent


def build(dockerfile: Path, context: Path, work: Path) -> Machine:
    """Execute all stages and return the last one, read-only."""
    machines: dict[str, Machine] = {}
    stages = read(dockerfile.read_text(encoding="utf-8"))
    for number, stage in enumerate(stages):
        name = stage.name or f"stage{number}"
        machine = machines[name] = Machine(work, name)
        for step in stage.steps:
            machine.do(step, machines, context)
    machine.freeze([step.text for step in stages[-1].steps if step.name == "VOLUME"], work)
    return machine


def megabytes(root: Path) -> float:
    """Return the total size of the files below a folder in units of 10⁶ bytes, as Docker reports sizes."""
    files = [path for path in root.rglob("*") if not path.is_symlink() and path.is_file()]
    return sum(path.stat().st_size for path in files) / 1e6


if __name__ == "__main__":
    _, given, context, work, *command = sys.argv
    build(Path(given), Path(context), Path(work)).run(command)
