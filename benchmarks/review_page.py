"""How long the page's next document takes: server time of each judgement, two reviewers at once, on the news topics.

`Server-Timing` of every answer is the time from the request to the answer's first byte; the judgement is stored (fsync)
and the order retrained within it. Beside it stands the server's CPU time per judgement, which other work on the machine
does not change. First paint: bytes of the judging page with all that it loads.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.support.common import record, shared_data
from linker.engine.building import BuildOptions, build
from linker.review.interface import Seed
from linker.review.ledger import Ledger
from linker.review.project import Workspace
from linker.server.page.rendering import SWAP

FIELD = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')
VERDICT = re.compile(r'<form id="verdict".*?</form>', re.DOTALL)


def make(folder: Path, topic: str) -> tuple[str, set[str]]:
    """Index the news in a review with the topic's seeds; return the review's key and the relevant ids."""
    data = shared_data() / "news-topics"
    with gzip.open(data / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        documents = {d["_id"]: d for d in map(json.loads, file)}
    with gzip.open(data / "seeds.jsonl.gz", "rt", encoding="utf-8") as file:
        chosen = {s["_id"]: s["metadata"]["documents"] for s in map(json.loads, file)}[topic]
    project = Workspace(folder).create(topic)
    build([data / "corpus.jsonl.gz"], project.index, BuildOptions())
    with Ledger(project.ledger) as ledger:
        ledger.put_seeds([Seed(d, documents[d]["text"], documents[d]["title"], {}, d) for d in chosen])
    relevant = set()
    for path in (data / "qrels").glob("*.tsv"):
        with path.open(encoding="utf-8") as rows:
            relevant |= {
                row[1] for row in csv.reader(rows, delimiter="\t") if row[0] == topic and row[2] != "0"
            }
    return project.key, relevant


def review(address: str, name: str, relevant: set[str], reads: int, times: list[float]) -> None:
    """Judge so many documents as one reviewer and add the server's milliseconds of each next page to `times`."""
    with httpx.Client(base_url=address, follow_redirects=True, timeout=60, headers={SWAP: "1"}) as client:
        client.cookies["linker-reviewer"] = name
        page = client.get("judge")
        for _ in range(reads):
            form = VERDICT.search(page.text)
            assert form is not None, page.text
            values = dict(FIELD.findall(form[0]))
            values["verdict"] = "relevant" if values["id"] in relevant else "not"
            page = client.post("judge", data=values)
            page.raise_for_status()
            times.append(float(page.headers["server-timing"].partition("dur=")[2]))


def first_paint(address: str) -> int:
    """Return the bytes of the judging page with its styles, scripts and icon."""
    with httpx.Client(base_url=address) as client:
        page = client.get("judge")
        loaded = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text))
        return len(page.content) + sum(len(client.get(httpx.URL(address).join(a)).content) for a in loaded)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Serve, judge with one and with two reviewers, and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--topic", default="ship")
    parser.add_argument("--reads", type=int, default=300, help="per reviewer")
    options = parser.parse_args()
    results: dict[str, Any] = {"topic": options.topic, "reads": options.reads}
    for reviewers in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            key, relevant = make(Path(folder), options.topic)
            command = [sys.executable, "-m", "linker", "serve", folder, "--port", "0"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
                assert server.stdout is not None
                address = f"{server.stdout.readline().strip()}p/{key}/"
                review(address, "warm", relevant, 5, [])
                times: list[float] = []
                before = cpu_seconds(server.pid)
                threads = [
                    threading.Thread(target=review, args=(address, f"r{i}", relevant, options.reads, times))
                    for i in range(reviewers)
                ]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                used = cpu_seconds(server.pid) - before
                results["first_paint_bytes"] = first_paint(address)
                server.terminate()
        results[f"reviewers_{reviewers}"] = {
            "next_ms_median": round(float(np.median(times)), 1),
            "next_ms_p95": round(float(np.percentile(times, 95)), 1),
            "cpu_ms_per_judgement": round(1000 * used / len(times), 2),
            "judgements": len(times),
        }
        print(json.dumps(results), file=sys.stderr)
    record("review_page", results)


if __name__ == "__main__":
    main()
