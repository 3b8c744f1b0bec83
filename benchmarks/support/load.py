"""Load on a local server from `wrk`: requests from a file in turn, over a number of connections at once."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SCRIPT = """
local bodies, n = {}, 0
function init(args)
  for line in io.lines(args[1]) do bodies[#bodies + 1] = line end
end
function request()
  n = n % #bodies + 1
  return wrk.format("POST", nil, {["content-type"] = "application/json"}, bodies[n])
end
function done(summary, latency, requests)
  local e = summary.errors
  io.stderr:write(string.format(
    '{"requests": %d, "us": %d, "p50": %d, "p99": %d, "refused": %d, "broken": %d}',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    e.status, e.connect + e.read + e.write + e.timeout))
end
"""


def write_bodies(path: Path, bodies: Sequence[Any]) -> Path:
    """Write the bodies of requests, one per line."""
    path.write_text("".join(json.dumps(body) + "\n" for body in bodies), encoding="utf-8")
    return path


def load(url: str, bodies: Path, connections: int, seconds: int) -> dict[str, float]:
    """Return requests per second, milliseconds (p50, p99) and the number of failed requests."""
    wrk = shutil.which("wrk")
    if wrk is None:
        raise SystemExit("there is no wrk: install it (Debian's package wrk)")
    script = bodies.with_name("post.lua")
    script.write_text(SCRIPT, encoding="utf-8")
    how = ["-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(script)]
    done = subprocess.run(
        [wrk, *how, url, "--", str(bodies)], capture_output=True, text=True, timeout=seconds + 90, check=True
    )
    found = json.loads(done.stderr[done.stderr.index("{") :])
    return {
        "per_s": round(found["requests"] / found["us"] * 1e6, 1),
        "p50_ms": round(found["p50"] / 1000, 2),
        "p99_ms": round(found["p99"] / 1000, 2),
        "requests": found["requests"],
        "failed": found["refused"] + found["broken"],
    }
