"""A small HTTP server on loopback that responds like Elasticsearch and records requests."""

import contextlib
import http.server
import threading
from collections.abc import Iterator
from typing import ClassVar


class Recorder(http.server.BaseHTTPRequestHandler):
    """Answers everything with `status` and `body`, and records the paths and credentials it receives."""

    status, body, product = 200, b'{"count": 3, "docs": []}', "Elasticsearch"
    kind, location = "application/vnd.elasticsearch+json;compatible-with=8", ""
    shown: ClassVar[list[str | None]]
    paths: ClassVar[list[str]]

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.shown.append(self.headers.get("Authorization"))
        self.paths.append(self.path)
        self.send_response(self.status)
        self.send_header("Content-Type", self.kind)
        self.send_header("X-Elastic-Product", self.product)
        self.send_header("Content-Length", str(len(self.body)))
        if self.location:
            self.send_header("Location", self.location + self.path)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(self.body)

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextlib.contextmanager
def recording() -> Iterator[tuple[str, type[Recorder]]]:
    """Give the address of a running recorder, and its class, which holds its records."""
    handler = type("Handler", (Recorder,), {"shown": [], "paths": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}", handler
        finally:
            running.shutdown()
            thread.join()
