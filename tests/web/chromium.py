"""A server in a process of its own, and Debian's Chromium that looks at it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
HERE = Path(CHROMIUM).exists()
needs_chromium = pytest.mark.skipif(
    not HERE and os.environ.get("CI") != "true",
    reason=f"there is no Chromium at {CHROMIUM}: apt install chromium",
)


class Server:
    """`linker serve` for a folder; it can be killed and started again at the same address."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, 0
        self.start()

    def start(self) -> None:
        """Start the server and wait for its address."""
        command = [sys.executable, "-m", "linker", "serve", str(self.folder), "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip().rstrip("/")
        assert self.address, "the server did not start"
        self.port = int(self.address.rpartition(":")[2])

    def kill(self) -> None:
        """End it as a power cut does."""
        self.process.send_signal(signal.SIGKILL)
        self._ended()

    def stop(self) -> None:
        """End it orderly."""
        self.process.terminate()
        self._ended()

    def _ended(self) -> None:
        self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """Serve a folder."""
    server = Server(folder)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    """Open Chromium without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def reviewer(browser: Browser, server: Server, name: str, faults: list[str]) -> tuple[BrowserContext, Page]:
    """Return a browser window of its own, signed as `name`; what the console complains of goes to `faults`."""
    context = browser.new_context(viewport={"width": 1100, "height": 800}, locale="en-GB")
    context.add_cookies([{"name": "linker-reviewer", "value": name, "url": server.address}])
    page = context.new_page()
    page.set_default_timeout(30_000)
    page.on("console", lambda m: faults.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    return context, page


def axe(page: Page) -> list[str]:
    """Return what axe-core finds wrong in a page (WCAG 2.2 AA and its best practices)."""
    found = Axe().run(page).response["violations"]
    return [f"{page.url}: {v['id']}: {v['nodes'][0]['html'][:200]}" for v in found]
