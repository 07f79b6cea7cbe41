"""Start and stop: TLS, ports, draining, and a bounded polite end."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import json
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from websockets.exceptions import InvalidStatus

from gateway import config
from gateway.channels.base import EndReason
from gateway.errors import ConfigError
from gateway.server.app import check_port
from tests.server.conftest import Serve
from tests.server.echo import EchoCall, EchoCalls, until
from tests.server.wire import NATIVE, close_code, request, start_native, websocket


async def test_a_taken_port_is_a_setting_to_change(serve: Serve) -> None:
    gateway = await serve()
    with pytest.raises(ConfigError) as caught:
        await serve({"server.port": gateway.port})
    assert caught.value.code == "config.port"


async def test_a_taken_port_is_known_before_anything_is_started(serve: Serve) -> None:
    gateway = await serve()
    settings = config.load(flags=[f"server.port={gateway.port}"])
    with pytest.raises(ConfigError) as caught:
        await check_port(settings)
    assert caught.value.code == "config.port"
    await gateway.stop()
    # What is free is left free.
    for _ in range(2):
        await check_port(settings)


async def test_an_open_server_does_not_start(serve: Serve) -> None:
    with pytest.raises(ConfigError) as caught:
        await serve({"server.host": "0.0.0.0"})
    assert caught.value.code == "config.open_server"


async def test_stopping_says_goodbye_to_every_call(serve: Serve, calls: EchoCalls) -> None:
    gateway = await serve()
    async with websocket(gateway, NATIVE) as started, websocket(gateway, NATIVE) as silent:
        await start_native(started)
        await until(lambda: len(calls.made) == 2 and calls.made[0].started)
        stopping = asyncio.create_task(gateway.stop())
        assert json.loads(await started.recv()) == {"endSession": {}}
        assert await close_code(started) == 1001
        assert await close_code(silent) == 1001
        await stopping
    assert calls.made[0].reason is EndReason.SHUTDOWN
    assert gateway.active == 0


async def test_running_calls_may_go_on_while_new_ones_are_refused(
    serve: Serve, calls: EchoCalls
) -> None:
    gateway = await serve({"server.drain_s": 20})
    async with websocket(gateway, NATIVE) as client:
        await start_native(client)
        await until(lambda: calls.made and calls.made[0].started)
        stopping = asyncio.create_task(gateway.stop())
        await asyncio.sleep(0)
        assert (await request(gateway, "GET", "/readyz"))[0] == 503
        assert (await request(gateway, "GET", "/healthz"))[0] == 200
        with pytest.raises(InvalidStatus) as caught:
            async with websocket(gateway, NATIVE):
                pass
        assert caught.value.response.status_code == 503
        await client.send('{"realtimeInput":{"text":"still here"}}')
        await until(lambda: calls.made[0].texts == ["still here"])
    await stopping
    assert calls.made[0].reason is EndReason.TRANSPORT_LOST


async def test_a_call_that_will_not_end_is_ended(
    serve: Serve, calls: EchoCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EchoCall, "shutdown", lambda _call: None)
    gateway = await serve({"server.shutdown_s": 0.1})
    async with websocket(gateway, NATIVE) as client:
        await start_native(client)
        await until(lambda: calls.made and calls.made[0].started)
        stopping = asyncio.create_task(gateway.stop())
        assert await close_code(client) == 1001
        await stopping
    assert calls.made[0].reason is EndReason.SHUTDOWN


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A throw-away certificate for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return cert_file, key_file


async def test_both_stacks_over_tls(
    serve: Serve, calls: EchoCalls, certificate: tuple[Path, Path]
) -> None:
    cert_file, key_file = certificate
    gateway = await serve({"server.tls_cert": str(cert_file), "server.tls_key": str(key_file)})
    context = ssl.create_default_context(cafile=str(cert_file))
    status, _, body = await request(gateway, "GET", "/", ssl=context)
    assert status == 200
    assert f"wss://127.0.0.1:{gateway.port}/ws/" in body.decode()
    status, _, _ = await request(
        gateway, "POST", "/twilio/voice", data={"CallSid": "CA1", "x": "y" * 200_000}, ssl=context
    )
    assert status == 200
    async with websocket(gateway, NATIVE, ssl=context) as client:
        await start_native(client)
        await client.send('{"realtimeInput":{"audio":"AAAA/w=="}}')
        assert "audio" in json.loads(await client.recv())["sessionOutput"]
    status, _, _ = await request(gateway, "GET", "/nowhere", ssl=context)
    assert status == 404
    await until(lambda: gateway.active == 0)


async def test_a_certificate_that_cannot_be_read(serve: Serve, tmp_path: Path) -> None:
    nothing = tmp_path / "none.pem"
    with pytest.raises(ConfigError) as caught:
        await serve({"server.tls_cert": str(nothing), "server.tls_key": str(nothing)})
    assert caught.value.code == "config.tls"
