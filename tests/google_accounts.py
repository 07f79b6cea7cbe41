"""Where Google's accounts get their tokens, on this machine: the real names, through a proxy.

The library gives a user's credentials, and those that impersonate another account, no other
address. The operator's proxy settings lead the same client here.
"""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.agent.loopback import Api, api_server
from tests.assets.servers import certificate

HOSTS = ("oauth2.googleapis.com", "sts.googleapis.com", "iamcredentials.googleapis.com")
IMPERSONATED = "shop@ours.example"
_ACCOUNT = f"/v1/projects/-/serviceAccounts/{IMPERSONATED}"
EXPIRES = "2099-01-01T00:00:00Z"
CHUNK_BYTES = 1 << 16


class _Tunnel(StreamRequestHandler):
    """One CONNECT: whatever host is asked for, the bytes go to the accounts."""

    def handle(self) -> None:
        while self.rfile.readline().strip():
            pass
        self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        server = self.server
        assert isinstance(server, _Proxy)
        with socket.create_connection(server.target) as far:
            ends = {self.connection: far, far: self.connection}
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    if not (data := end.recv(CHUNK_BYTES)):
                        return
                    ends[end].sendall(data)


class _Proxy(ThreadingTCPServer):
    """An HTTP proxy that knows one way."""

    daemon_threads = True
    target = ("", 0)


@contextmanager
def google_accounts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    """The accounts, for whoever heeds this process's proxy settings."""
    context, authorities = certificate(folder, *HOSTS)
    with api_server(context) as api, _Proxy(("127.0.0.1", 0), _Tunnel) as proxy:
        address = urlsplit(api.url)
        assert address.hostname is not None
        assert address.port is not None
        proxy.target = (address.hostname, address.port)
        thread = threading.Thread(target=proxy.serve_forever, args=(0.01,), name="proxy")
        thread.start()
        host, port = proxy.server_address[:2]
        monkeypatch.setenv("HTTPS_PROXY", f"http://{host!s}:{port}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authorities))
        api.answers["/token"] = (200, {"access_token": "of-user", "expires_in": 3600})
        api.answers["/v1/token"] = (
            200,
            {
                "access_token": "of-pool",
                "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
                "token_type": "Bearer",
                "expires_in": 3600,
            },
        )
        given = {"accessToken": "of-shop", "expireTime": EXPIRES}
        api.answers[f"{_ACCOUNT}:generateAccessToken"] = (200, given)
        try:
            yield api
        finally:
            proxy.shutdown()
            thread.join()


def user(**more: Any) -> dict[str, Any]:
    """What `gcloud auth application-default login` writes."""
    return {
        "type": "authorized_user",
        "client_id": "id",
        "client_secret": "client-secret",
        "refresh_token": "refresh-secret",
        **more,
    }


def impersonating(**more: Any) -> dict[str, Any]:
    """A user who acts as a service account."""
    return {
        "type": "impersonated_service_account",
        "service_account_impersonation_url": (
            f"https://iamcredentials.googleapis.com{_ACCOUNT}:generateAccessToken"
        ),
        "source_credentials": user(),
        **more,
    }


def pooled(folder: Path, **more: Any) -> dict[str, Any]:
    """A workload elsewhere, whose own proof lies in a file."""
    proof = folder / "proof"
    proof.write_text("own-proof")
    return {
        "type": "external_account",
        "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/x/y",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": "https://sts.googleapis.com/v1/token",
        "credential_source": {"file": str(proof)},
        **more,
    }


def written(path: Path, content: dict[str, Any]) -> Path:
    """A file of credentials."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path
