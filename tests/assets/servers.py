"""Real servers on loopback for the asset tests: HTTP(S), raw sockets, a storage emulator."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import math
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from gcp_storage_emulator.server import create_server

from gateway.assets import ThreadRunner

T = TypeVar("T")
RATE_HZ = 8000
_SIGNING = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


def wav(seconds: float = 0.2, hz: float = 440.0) -> bytes:
    """A 16-bit mono WAV at 8 kHz."""
    at = np.arange(round(RATE_HZ * seconds)) / RATE_HZ
    pcm = np.rint(9000 * np.sin(2 * math.pi * hz * at)).astype("<i2").tobytes()
    head = b"WAVEfmt " + bytes.fromhex("10000000 01000100 401f0000 803e0000 02001000")
    body = head + b"data" + len(pcm).to_bytes(4, "little") + pcm
    return b"RIFF" + len(body).to_bytes(4, "little") + body


PCM = wav()[44:]


async def in_thread(fn: Callable[[], T]) -> T:
    """Run blocking client code while the servers run on this loop."""
    run = ThreadRunner(1)
    try:
        return await run(fn)
    finally:
        await run.aclose()


async def _closed_transports() -> None:
    """Let the loop do what closing a connection has scheduled, before it is closed itself."""
    for _ in range(5):
        await asyncio.sleep(0)


@asynccontextmanager
async def http_server(
    app: web.Application, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """Serves `app`; gives its base URL."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, 0, ssl_context=tls)
        await site.start()
        port = runner.addresses[0][1]
        yield f"{'https' if tls else 'http'}://{host}:{port}"
    finally:
        await runner.cleanup()
        await _closed_transports()


@asynccontextmanager
async def raw_server(answer: bytes, *, then_hang: bool = False) -> AsyncIterator[str]:
    """Answers every request with these bytes, then closes, or sends nothing more."""
    end = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
            if then_hang:
                await end.wait()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        end.set()
        server.close()
        await server.wait_closed()
        await _closed_transports()


@contextmanager
def storage_emulator(bucket: str) -> Iterator[str]:
    """A Cloud Storage emulator with one empty bucket; gives its endpoint."""
    server = create_server("127.0.0.1", 0, in_memory=True, default_bucket=bucket)
    server.start()
    try:
        yield f"http://127.0.0.1:{server._api._httpd.server_port}"
    finally:
        server.stop()


def certificate(folder: Path, *names: str) -> tuple[ssl.SSLContext, Path]:
    """A throw-away certificate for these names and addresses: server context and CA file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "voice-gateway tests")])
    now = datetime.datetime.now(datetime.UTC)
    alternatives: list[x509.GeneralName] = []
    for one in names:
        try:
            alternatives.append(x509.IPAddress(ipaddress.ip_address(one)))
        except ValueError:
            alternatives.append(x509.DNSName(one))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        # From Python 3.13 on, these are demanded of every authority.
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_SIGNING, critical=True)
        .sign(key, hashes.SHA256())
    )
    ca_file, key_file = folder / "ca.pem", folder / "key.pem"
    ca_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ca_file, key_file)
    return context, ca_file
