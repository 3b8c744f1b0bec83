"""Debian's Chromium under Playwright, and a server of our own next to it: a process, or a thread of this one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from linker.server.config import ServeConfig
from linker.server.guard.admission import LOOPBACK
from linker.server.guard.protocol import PatientProtocol
from linker.server.page.app import create_app
from linker.server.running import API_GRACE, address_of, listen

CHROMIUM = os.environ.get("LINKER_CHROMIUM", "/usr/bin/chromium")


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Give a browser; if there is none, skip the test, or fail under CI=true."""
    try:
        from playwright.sync_api import sync_playwright

        missing = "" if Path(CHROMIUM).exists() else f"{CHROMIUM} is not here: set LINKER_CHROMIUM"
    except ModuleNotFoundError as e:
        missing = f"{e.name} is not installed"
    if missing:
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def window(browser: Any, server: Server | Thread, name: str, faults: list[str], **options: Any) -> Any:
    """Return a separate browser window, signed in as `name`; console errors go to `faults`."""
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 800}, "locale": "en-GB"} | options)
    context.add_cookies([{"name": "linker-reviewer", "value": name, "url": server.address}])
    page = context.new_page()
    page.on("console", lambda m: faults.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    return page


def axe(page: Any) -> list[str]:
    """Return the problems that axe-core finds in a page."""
    from axe_playwright_python.sync_playwright import Axe

    violations = Axe().run(page).response["violations"]
    return [f"{page.url}: {v['id']}: {v['nodes'][0]['html'][:200]}" for v in violations]


def press(page: Any, key: str) -> None:
    """Press a key, and wait until the page shows what follows its request."""
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        page.keyboard.press(key)
    page.locator("#main:not([aria-busy])").wait_for()


class Server:
    """`linker serve` in a separate process; `address` has no trailing slash."""

    def __init__(self, folder: Path, port: int = 0, *options: str) -> None:
        command = [sys.executable, "-m", "linker", "serve", str(folder), "--port", str(port), *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip().rstrip("/")
        if not self.address:
            self.end()
            raise AssertionError(self.errors)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.address.rpartition(":")[2])

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._process.pid

    def kill(self) -> None:
        """Kill it at once, as a power loss would."""
        self._end(signal.SIGKILL)

    def end(self) -> int:
        """Stop it as a service manager does, and return its exit status."""
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        self._process.send_signal(how)
        _, self.errors = self._process.communicate(timeout=2 * API_GRACE)
        return self._process.returncode


@contextlib.contextmanager
def served(folder: Path, port: int = 0, *options: str) -> Iterator[Server]:
    """Give a server that ends with the test, if not earlier."""
    server = Server(folder, port, *options)
    try:
        yield server
    finally:
        if server._process.poll() is None:
            server.end()


@dataclass(frozen=True)
class Thread:
    """The page, answered by a thread of this process; `address` has no trailing slash."""

    address: str


@contextlib.contextmanager
def answered(folder: Path) -> Iterator[Thread]:
    """Give the page of a folder in a thread: as `served`, but without the seconds in which a process starts."""
    listener = listen(LOOPBACK[0], 0)
    server = uvicorn.Server(
        uvicorn.Config(
            create_app(ServeConfig.of(folder)), http=PatientProtocol, log_config=None, access_log=False, ws="none",
            timeout_graceful_shutdown=1,
        )
    )  # fmt: skip
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    address = address_of(LOOPBACK[0], listener).rstrip("/")
    thread.start()
    try:
        yield Thread(address)
    finally:
        server.should_exit = True
        thread.join()
