"""`ces_requests` against a real HTTP server on the loopback."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests

from gateway.agent.scope import scoped
from gateway.agent.tools.requests import CesRequests

http = CesRequests()


class _Handler(BaseHTTPRequestHandler):
    release = threading.Event()

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length).decode()
        if self.path.startswith("/hang"):
            self.release.wait(10)
        if self.path.startswith("/drip"):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                while not self.release.wait(0.02):
                    self.wfile.write(b"x")
            return
        if self.path.startswith("/slow-head"):
            with contextlib.suppress(ConnectionError):
                self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                while not self.release.wait(0.02):
                    self.wfile.write(b"X-More: x\r\n")
            return
        if self.path.startswith("/nowhere"):
            self.send_response(302)
            self.send_header("Location", "http://[::nowhere/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        status = 404 if self.path.startswith("/missing") else 200
        answer = {
            "method": self.command,
            "path": self.path,
            "body": body,
            "header": self.headers.get("X-Own"),
        }
        data = json.dumps(answer).encode()
        # A client whose deadline has passed is gone by now.
        with contextlib.suppress(ConnectionError):
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer

    def log_message(self, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    _Handler.release.set()
    server.shutdown()
    server.server_close()
    thread.join()


def test_all_methods_and_keywords(url: str) -> None:
    for method in ("get", "post", "put", "patch", "delete", "options"):
        response = getattr(http, method)(
            url=f"{url}/x", params={"a": "b"}, json={"k": 1}, headers={"X-Own": "h"}
        )
        assert response.status_code == 200
        assert response.ok
        assert response.json() == {
            "method": method.upper(),
            "path": "/x?a=b",
            "body": '{"k": 1}',
            "header": "h",
        }
        response.raise_for_status()


def test_a_refused_request_raises_only_when_asked(url: str) -> None:
    response = http.get(f"{url}/missing")
    assert response.status_code == 404
    assert "missing" in response.text
    with pytest.raises(requests.HTTPError):
        response.raise_for_status()


def test_no_connection_is_status_zero() -> None:
    response = http.get("http://127.0.0.1:1/")
    assert response.status_code == 0
    assert not response.ok
    with pytest.raises(requests.HTTPError):
        response.raise_for_status()


def test_an_answer_that_drips_does_not_outlast_the_deadline(url: str) -> None:
    # Whole, it would take 20 seconds, and never longer than 0.02 s from one byte to the next.
    response = http.get(f"{url}/drip", timeout=0.2)
    assert response.status_code == 0
    assert "deadline" in response.reason or "timed out" in response.reason


def test_a_head_that_drips_does_not_outlast_the_deadline(url: str) -> None:
    response = http.get(f"{url}/slow-head", timeout=0.2)
    assert response.status_code == 0
    assert "timed out" in response.reason


def test_a_redirect_to_no_address_is_status_zero(url: str) -> None:
    assert http.get(f"{url}/nowhere").status_code == 0


def test_the_deadline_of_the_call_bounds_the_request(url: str) -> None:
    call = scoped(lambda: http.get(f"{url}/hang", timeout=60), "s", None, 0.2)
    assert call().status_code == 0
    _Handler.release.set()


def test_what_is_no_url_is_status_zero() -> None:
    assert http.get("nonsense").status_code == 0
