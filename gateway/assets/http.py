"""https:// (and, if allowed, http://) files, fetched without trusting the URI.

A name is resolved once; all its addresses are checked and the connection goes to one of these, so
a name that changes its mind in between gains nothing. TLS and Host keep the name. Redirects pass
the same checks. Blocking: runs in a worker thread.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import threading
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from gateway.assets.deadline import Deadline
from gateway.assets.guard import Guard
from gateway.errors import AssetError, ConfigError

MAX_REDIRECTS = 3
_MAX_ADDRESSES = 4
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CHUNK_BYTES = 1 << 16
_DEFAULT_PORTS = {"https": 443, "http": 80}


class HttpSource:
    """Fetches files by URL within the limits it is given."""

    def __init__(
        self, guard: Guard, *, allow_http: bool, max_bytes: int, ca_file: Path | None = None
    ) -> None:
        self._guard = guard
        self._schemes = ("https", "http") if allow_http else ("https",)
        self._max_bytes = max_bytes
        self._tls = ssl.create_default_context()
        if ca_file is not None:
            try:
                self._tls.load_verify_locations(ca_file)
            except OSError as error:
                raise ConfigError(
                    "config.value", f"assets.ca_file: {error}", where=str(ca_file)
                ) from None
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._closed = False

    def fetch(self, url: str, deadline: Deadline) -> bytes:
        """The file's bytes. Raises AssetError with the code that says what went wrong."""
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._get(url, deadline)
            if isinstance(answer, bytes):
                return answer
            try:
                url = urljoin(url, answer)
            except ValueError:
                raise AssetError(
                    "asset.uri", "redirected to no valid URL", where=deadline.where
                ) from None
        raise AssetError(
            "asset.unreachable", f"more than {MAX_REDIRECTS} redirects", where=deadline.where
        )

    def close(self) -> None:
        """End all fetches at once, also those in other threads."""
        with self._lock:
            self._closed = True
            for open_socket in self._open:
                _shut(open_socket)

    def _check_open(self, where: str, added: socket.socket | None = None) -> None:
        """Raise AssetError once all is closed; else keep `added` as one to be ended then."""
        with self._lock:
            if self._closed:
                raise AssetError("asset.unreachable", "the gateway is closing", where=where)
            if added is not None:
                self._open.add(added)

    def _get(self, url: str, deadline: Deadline) -> bytes | str:
        """The body, or where the server sends us instead."""
        where = deadline.where
        parts, host, port = self._parse(url, where)
        self._guard.check_host(host, where)
        self._check_open(where)
        raw = self._connect(host, port, deadline)
        try:
            self._check_open(where, raw)
            wire = raw
            if parts.scheme == "https":
                raw.settimeout(deadline.remaining_s())
                wire = self._tls.wrap_socket(raw, server_hostname=host)
                with self._lock:
                    self._open.discard(raw)
                    self._open.add(wire)
            try:
                return self._exchange(wire, parts, host, port, deadline)
            finally:
                with self._lock:
                    self._open.discard(wire)
                wire.close()
        except TimeoutError:
            raise deadline.passed() from None
        except ssl.SSLCertVerificationError as error:
            raise AssetError(
                "asset.unreachable",
                f"the certificate of {host} is not trusted: {error.verify_message}",
                where=where,
                hint="assets.ca_file names further authorities",
            ) from None
        except http.client.IncompleteRead:
            raise AssetError("asset.truncated", "the body was cut off", where=where) from None
        except (OSError, http.client.HTTPException) as error:
            raise AssetError(
                "asset.unreachable", f"{host} broke off: {error!r}", where=where
            ) from None
        finally:
            with self._lock:
                self._open.discard(raw)
            raw.close()

    def _parse(self, url: str, where: str) -> tuple[SplitResult, str, int]:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise AssetError("asset.uri", f"no valid URL: {error}", where=where) from None
        if parts.scheme not in self._schemes:
            raise AssetError(
                "asset.scheme",
                f"{parts.scheme}:// is not fetched",
                where=where,
                hint="assets.allow_http allows http://" if parts.scheme == "http" else None,
            )
        if not parts.hostname or parts.username is not None or parts.password is not None:
            raise AssetError(
                "asset.uri", "a URL needs a host and must not hold credentials", where=where
            )
        return parts, parts.hostname, port or _DEFAULT_PORTS[parts.scheme]

    def _connect(self, host: str, port: int, deadline: Deadline) -> socket.socket:
        addresses = self._guard.resolve(host, port, deadline.where)
        failure: OSError | None = None
        for address in addresses[:_MAX_ADDRESSES]:
            try:
                return socket.create_connection((str(address), port), deadline.remaining_s())
            except TimeoutError:
                raise deadline.passed() from None
            except OSError as error:
                failure = error
        raise AssetError("asset.unreachable", f"{host}: {failure}", where=deadline.where)

    def _exchange(
        self, wire: socket.socket, parts: SplitResult, host: str, port: int, deadline: Deadline
    ) -> bytes | str:
        path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
        query = f"?{quote(parts.query, safe='/%:@!$&()*+,;=~-._?')}" if parts.query else ""
        name = f"[{host}]" if ":" in host else host.encode("idna").decode()
        if port != _DEFAULT_PORTS[parts.scheme]:
            name = f"{name}:{port}"
        wire.settimeout(deadline.remaining_s())
        wire.sendall(
            f"GET {path}{query} HTTP/1.1\r\nHost: {name}\r\nUser-Agent: voice-gateway\r\n"
            "Accept: audio/*, */*;q=0.5\r\nAccept-Encoding: identity\r\n"
            "Connection: close\r\n\r\n".encode("ascii")
        )
        response = http.client.HTTPResponse(_Deadlined(wire, deadline), method="GET")  # type: ignore[arg-type]
        try:
            response.begin()
            location = response.getheader("Location")
            if response.status in _REDIRECTS and location:
                return location
            self._check_head(response, deadline.where)
            return self._body(response, deadline.where)
        finally:
            response.close()

    def _check_head(self, response: http.client.HTTPResponse, where: str) -> None:
        status = response.status
        if status != 200:
            code = {401: "forbidden", 403: "forbidden", 404: "not_found", 410: "not_found"}
            raise AssetError(
                f"asset.{code.get(status, 'unreachable')}",
                f"the server answered {status}",
                where=where,
            )
        coding = response.getheader("Content-Encoding", "identity").lower()
        if coding != "identity":
            raise AssetError("asset.format", f"the body is {coding}-encoded", where=where)
        if response.length is not None and response.length > self._max_bytes:
            raise self._too_large(where)

    def _body(self, response: http.client.HTTPResponse, where: str) -> bytes:
        expected = response.length
        body = bytearray()
        while chunk := response.read(_CHUNK_BYTES):
            body += chunk
            if len(body) > self._max_bytes:
                raise self._too_large(where)
        if expected is not None and len(body) < expected:
            raise AssetError(
                "asset.truncated", f"{len(body)} of {expected} bytes arrived", where=where
            )
        return bytes(body)

    def _too_large(self, where: str) -> AssetError:
        return AssetError(
            "asset.too_large",
            f"larger than {self._max_bytes} bytes",
            where=where,
            hint="see assets.max_bytes",
        )


class _Deadlined:
    """A socket for HTTPResponse that gives each read only what is left of the deadline.

    A plain socket timeout starts afresh with every byte that a slow server sends.
    """

    def __init__(self, wire: socket.socket, deadline: Deadline) -> None:
        self._wire = wire
        self._deadline = deadline

    def makefile(self, mode: str) -> io.BufferedReader:
        """The buffered reader that HTTPResponse asks for."""
        return io.BufferedReader(_Reader(self._wire, self._deadline))


class _Reader(io.RawIOBase):
    def __init__(self, wire: socket.socket, deadline: Deadline) -> None:
        super().__init__()
        self._wire = wire
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        self._wire.settimeout(self._deadline.remaining_s())
        return self._wire.recv_into(buffer)


def _shut(open_socket: socket.socket) -> None:
    try:
        open_socket.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # its thread has closed it meanwhile
