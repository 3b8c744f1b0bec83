"""`linker serve` as a command: its output, how it ends, and its errors."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.helpers import linker
from tests.server.page.chromium import Server, served
from tests.test_missing_extra import WITHOUT


def test_it_prints_its_address_and_ends_in_peace(folder: Path) -> None:
    with served(folder) as server:
        assert server.address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(server.address + "/p/floods/judge") as answer:
            assert answer.status == 200
        assert server.end() == 0
        assert server.errors == ""


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="there is no /proc")
def test_the_learner_is_loaded_before_anybody_asks(folder: Path) -> None:
    with served(folder) as server:
        loaded, end = Path(f"/proc/{server.pid}/maps"), time.monotonic() + 120
        while "_liblinear" not in loaded.read_text(encoding="utf-8"):  # the part loaded last
            assert time.monotonic() < end
            time.sleep(0.1)
        assert server.end() == 0
        assert server.errors == ""


def test_an_index_is_served_with_its_ledger_beside_it(folder: Path) -> None:
    with (
        served(folder / "floods" / "index") as server,
        urllib.request.urlopen(server.address + "/p/index/judge") as answer,
    ):
        assert b'name="name"' in answer.read()  # the reviewer's name is asked first
    assert (folder / "floods" / "index.review.sqlite").exists()


def test_a_port_that_is_taken_is_named(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = linker("serve", folder, "--port", str(taken.getsockname()[1]), check=1)
    assert "--port" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_network_is_refused_without_a_token(folder: Path) -> None:
    done = linker("serve", folder, "--host", "0.0.0.0", check=1)
    assert "--token-file" in done.stderr
    assert done.stdout == ""


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "news.csv").write_text("id,text\n")
    assert "is a file" in linker("serve", tmp_path / "news.csv", check=1).stderr


def test_without_the_extra_one_line_names_it(tmp_path: Path) -> None:
    for library in ("fastapi", "uvicorn", "jinja2", "babel", "python_multipart"):
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT, library, "serve x --port 0"],
            capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60,
        )  # fmt: skip
        assert done.stdout.split() == ["1"], library
        assert "[serve]" in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr


def test_a_killed_server_leaves_no_lock(folder: Path) -> None:
    server = Server(folder)
    urllib.request.urlopen(server.address + "/p/floods/judge").close()
    server.kill()
    with served(folder) as again, urllib.request.urlopen(again.address + "/p/floods/judge") as answer:
        assert answer.status == 200
