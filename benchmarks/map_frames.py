"""Frames per second while the map of 20,000 documents is panned: `python -m benchmarks.map_frames`."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.support.common import parse_options, record
from indexes.interface import Document
from linker.engine.building import create
from linker.engine.engine import Engine
from linker.review.project import Workspace
from linker.server.jobs.points import MOST, save
from tests.server.page.chromium import chromium, served

SECONDS = 5
# Pans by a few pixels on every frame that the browser offers, and returns the milliseconds between drawn frames.
PAN = """async (seconds) => {
  const canvas = document.getElementById("map");
  const times = [];
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: times.length % 40 < 20 ? "ArrowLeft" : "ArrowRight" }));
    times.push(await new Promise(requestAnimationFrame));
  }
  return times.slice(1).map((time, i) => time - times[i]);
}"""


def measure(points: int) -> dict[str, float]:
    """Return the median and the 95th percentile of the milliseconds per frame, and the frames per second."""
    with tempfile.TemporaryDirectory() as scratch, chromium() as browser:
        project = Workspace(Path(scratch)).create("Map")
        create(project.index)
        Engine(project.index).add([Document("d0", "one document")])
        places = np.random.default_rng(0).normal(32_768, 9_000, (points, 2)).clip(0, 65_535)
        save(project.map, [f"d{i}" for i in range(points)], places.astype(np.uint16), 1)
        with served(Path(scratch)) as server:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(f"{server.address}/p/map/map")
            page.wait_for_selector("canvas[data-ready]")
            frames = sorted(page.evaluate(PAN, SECONDS))
    return {
        "points": points,
        "frames": len(frames),
        "frames_per_second": round(1000 * len(frames) / sum(frames), 1),
        "median_ms": round(statistics.median(frames), 2),
        "p95_ms": round(frames[int(0.95 * len(frames))], 2),
    }


if __name__ == "__main__":
    record("map_frames", measure(parse_options(__doc__, points=MOST).points), seed=0)
