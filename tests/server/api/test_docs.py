"""The commands in docs/http.md print the output shown."""

import shutil
import socket
from pathlib import Path

import pytest

from linker.server.api import children
from linker.server.api.bulk import BATCH_BYTES, BATCH_DOCUMENTS, MOST_BAD
from linker.server.api.guard import OPEN
from linker.server.api.metrics import ServerMetrics
from linker.server.api.routes.common import MOST_VALUES
from linker.server.api.routes.search import MOST_HITS, MOST_K, MOST_TEXTS
from linker.server.config import Limits
from linker.server.guard.protocol import SECONDS
from linker.server.register import KNOWN
from tests.helpers import ROOT
from tests.site.transcripts import run

PAGE = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_commands_print_what_the_page_says(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    page = PAGE.replace("serve news --api", f"serve news --api --port {port}")
    steps = run(page.replace("127.0.0.1:8000", f"127.0.0.1:{port}"), tmp_path)
    assert len(steps) > 15
    assert not [(step.command, step.printed) for step in steps if not step.right]


def test_the_page_names_the_limits() -> None:
    limits = Limits()
    for said in (
        f"{limits.body >> 20} MiB; for `documents:bulk` {limits.bulk >> 30} GiB",
        f"{SECONDS:g} seconds to arrive", f"| {limits.idle:g} seconds |", f"| {limits.seconds:g} seconds, except",
        f"| {limits.waiting}; more", f"metadata | {MOST_VALUES:,} |", f"more than {children.LARGE >> 10} KiB",
        f"{BATCH_DOCUMENTS:,} documents or {BATCH_BYTES >> 20} MiB",
        f"After {MOST_BAD:,} unusable lines", f"up to {MOST_TEXTS:,} texts",
        f"{MOST_K:,} at most; at most {MOST_HITS:,} in total",
    ):  # fmt: skip
        assert said in PAGE, said
    assert all(f"`{path}`" in PAGE for path in OPEN if path.count("/") == 1)
    assert all(str(status) in PAGE for status, _ in KNOWN.values())


def test_the_page_names_every_metric() -> None:
    names = {
        line.split()[2] for line in ServerMetrics().text().decode().splitlines() if line.startswith("# HELP")
    }
    assert all(f"`{name}`" in PAGE for name in names if not name.endswith("_created"))
