"""How large is the image's environment? The Dockerfile's steps are executed on an overlay of this machine's root.

python -m benchmarks.image      (as root; downloads packages that are not cached)
"""

import subprocess
import sys

from benchmarks.support.common import ROOT
from benchmarks.support.harness import Arguments, Results, benchmark
from tests.deploy.dockerfile import BASE, megabytes

LARGEST = 8


@benchmark(work=None)
def measured(options: Arguments) -> Results:
    command = ["unshare", "--mount", sys.executable, "-m", "tests.deploy.dockerfile"]
    steps = [*command, ROOT / "Dockerfile", ROOT, options.work, "linker", "--version"]
    subprocess.run(steps, cwd=ROOT, check=True)
    environment = options.work / "stage1" / "upper" / "opt" / "linker"
    (packages,) = environment.glob("lib/python*/site-packages")
    sizes = {path.name: round(megabytes(path), 1) for path in packages.iterdir() if path.is_dir()}
    largest = dict(sorted(sizes.items(), key=lambda item: -item[1])[:LARGEST])
    size = round(megabytes(environment), 1)
    return {"environment_mb": size, "base_mb_at_most": BASE, "largest_mb": largest}
