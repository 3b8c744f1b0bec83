"""How large the image's environment is: the steps of the Dockerfile, executed on an overlay of this machine's root.

python -m benchmarks.image      (as root; downloads what is not cached)
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.support.common import ROOT, record
from tests.deploy.dockerfile import BASE, megabytes

LARGEST = 8


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        command = ["unshare", "--mount", sys.executable, "-m", "tests.deploy.dockerfile"]
        subprocess.run(
            [*command, ROOT / "Dockerfile", ROOT, work, "linker", "--version"], cwd=ROOT, check=True
        )
        environment = work / "stage1" / "upper" / "opt" / "linker"
        (packages,) = environment.glob("lib/python*/site-packages")
        sizes = {path.name: round(megabytes(path), 1) for path in packages.iterdir() if path.is_dir()}
        largest = dict(sorted(sizes.items(), key=lambda item: -item[1])[:LARGEST])
        size = round(megabytes(environment), 1)
    path = record("image", {"environment_mb": size, "base_mb_at_most": BASE, "largest_mb": largest})
    print(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
