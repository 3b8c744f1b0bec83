"""Builds an index with the hash encoder, for tests that kill it: CORPUS OUT VECTORS [--resume]."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from linker import building
from tests.helpers import HashEncoder


def main() -> None:
    corpus, out, vectors, *flags = sys.argv[1:]
    setattr(building, "load_encoder", lambda name, **_: HashEncoder())  # noqa: B010 - replaced for mypy's sake too
    options = building.BuildOptions("hash", vectors, batch_size=32, commit_every=64)
    print("started", flush=True)
    report = building.build([Path(corpus)], Path(out), options, resume="--resume" in flags)
    print(report)


if __name__ == "__main__":
    main()
