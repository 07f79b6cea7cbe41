"""Connections that answer in time: the head of an answer, too, comes within the bound.

A socket's timeout bounds one reception. A server that drips its status line and headers stays
within it for ever; here the whole head has the time that one reception would have.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from threading import Timer
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.response import HTTPResponse


class _Head:
    """While the head of an answer comes; raises TimeoutError where it came too late."""

    def __init__(self, sock: socket.socket | None, limit_s: Any) -> None:
        self._sock = sock
        self._late = False
        bounded = sock is not None and isinstance(limit_s, int | float)
        self._timer = Timer(limit_s, self._end) if bounded else None

    def __enter__(self) -> None:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._late:
            raise TimeoutError("the deadline has passed")

    def _end(self) -> None:
        self._late = True
        assert self._sock is not None
        with suppress(OSError):
            # Wakes who reads it, which closing would not.
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)


class _Plain(HTTPConnection):
    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as in its base
        with _Head(self.sock, self.timeout):
            return super().getresponse()


class _Secure(HTTPSConnection):
    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as in its base
        with _Head(self.sock, self.timeout):
            return super().getresponse()


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Plain


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _Secure


_POOLS = {"http": _PlainPool, "https": _SecurePool}


class PunctualAdapter(HTTPAdapter):
    """Makes such connections; `trust`: a TLS context of the tool's own."""

    def __init__(self, trust: ssl.SSLContext | None = None) -> None:
        self._trust = trust
        super().__init__()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Make the pool with our connections and our context."""
        if self._trust is not None:
            options["ssl_context"] = self._trust
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        """Likewise through a proxy."""
        manager = super().proxy_manager_for(proxy, **options)
        manager.pool_classes_by_scheme = _POOLS
        return manager


def session_in_time() -> requests.Session:
    """A session over such connections."""
    session = requests.Session()
    for scheme in _POOLS:
        session.mount(f"{scheme}://", PunctualAdapter())
    return session
