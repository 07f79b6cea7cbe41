"""The far ends of the cloud's clients on loopback: BigQuery and Logging, with their faults."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


@dataclass
class Cloud:
    """A service that remembers what it was told."""

    url: str = ""
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    """Method, path and JSON body."""
    faults: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    """Answers to give first, in order."""
    tables: set[str] = field(default_factory=set)

    def answer(self, method: str, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        self.requests.append((method, path, body))
        if self.faults:
            return self.faults.pop(0)
        if path.endswith("/tables"):
            table = body["tableReference"]["tableId"]
            if table in self.tables:
                return 409, {"error": {"code": 409, "message": "exists"}}
            self.tables.add(table)
            return 200, body
        if "/tables/" in path and method == "GET":
            reference = {"projectId": "p", "datasetId": "d", "tableId": path.rpartition("/")[2]}
            return 200, {"tableReference": reference}
        return 200, {}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All inserted rows, each id once, as the service keeps them."""
        kept: dict[str, dict[str, Any]] = {}
        for _, path, body in self.requests:
            if path.endswith("/insertAll"):
                kept.update({row["insertId"]: row["json"] for row in body["rows"]})
        return list(kept.values())

    @property
    def entries(self) -> list[dict[str, Any]]:
        """All log entries, each id once."""
        kept: dict[str, dict[str, Any]] = {}
        for _, path, body in self.requests:
            if path.endswith("/entries:write"):
                kept.update({entry["insertId"]: entry for entry in body["entries"]})
        return list(kept.values())


class _Handler(BaseHTTPRequestHandler):
    cloud: ClassVar[Cloud]
    protocol_version = "HTTP/1.1"
    timeout = 10

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        status, answer = self.cloud.answer(self.command, self.path.partition("?")[0], body)
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = True

    do_GET = do_POST = _serve

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def cloud() -> Iterator[Cloud]:
    """A running service."""
    made = Cloud()
    handler = type("Handler", (_Handler,), {"cloud": made})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="cloud")
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
