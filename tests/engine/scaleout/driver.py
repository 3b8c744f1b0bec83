"""Runs a distributed build that tests interrupt and kill: driver.py FOLDER ADDRESS resume|begin CORPUS…"""

import sys
from pathlib import Path

from tests.engine.scaleout.encoders import CountingEncoder
from tests.engine.scaleout.support import build


def main() -> None:
    folder, where, how, *given = sys.argv[1:]
    encoder, corpora = CountingEncoder(Path(folder), 0.2), [Path(c) for c in given]
    report = build(corpora, where, encoder, engine="ray", vectors="flat", resume=how == "resume")
    print(report.added, report.interrupted)


if __name__ == "__main__":
    main()
