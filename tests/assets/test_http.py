"""https:// files over the wire: limits, redirects, broken servers, names that lie."""

import asyncio
import socket
from dataclasses import dataclass
from ipaddress import ip_address

import pytest
from aiohttp import web

from gateway.assets.deadline import Deadline
from gateway.assets.guard import Address, Guard
from gateway.assets.http import HttpSource
from gateway.errors import AssetError, ConfigError

from .servers import certificate, http_server, in_thread, raw_server

MAX_BYTES = 100_000
WHERE = "the uri"


@dataclass(frozen=True, slots=True)
class PretendPublic(Guard):
    """127.0.0.2 stands for the internet; everything else is judged as always."""

    def check_address(self, address: Address, where: str) -> None:
        if address != ip_address("127.0.0.2"):
            # Two arguments: dataclass slots make a new class that a bare super() does not know.
            super(PretendPublic, self).check_address(address, where)


def source(guard: Guard | None = None, **options) -> HttpSource:
    options = {"allow_http": True, "max_bytes": MAX_BYTES, **options}
    return HttpSource(guard or Guard(allow_private_addresses=True), **options)


async def get(url: str, fetcher: HttpSource | None = None, timeout_s: float = 20.0) -> bytes:
    fetcher = fetcher or source()
    return await in_thread(lambda: fetcher.fetch(url, Deadline.after(timeout_s, WHERE)))


async def code_of(url: str, fetcher: HttpSource | None = None, timeout_s: float = 20.0) -> str:
    with pytest.raises(AssetError) as caught:
        await get(url, fetcher, timeout_s)
    assert caught.value.where == WHERE
    return caught.value.code


def site(**answers) -> web.Application:
    """One path for each answer: a body, a status, or a place to go to."""
    app = web.Application()

    async def answer(request: web.Request) -> web.Response:
        found = answers[request.path[1:]]
        if isinstance(found, bytes):
            return web.Response(body=found)
        if isinstance(found, int):
            return web.Response(status=found, text="no")
        return web.Response(status=302, headers={"Location": found})

    for path in answers:
        app.router.add_get(f"/{path}", answer)
    return app


async def test_a_file_is_fetched_with_its_query_and_host():
    seen: list[tuple[str, str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.path_qs, request.headers["Host"], request.headers["Accept-Encoding"]))
        return web.Response(body=b"audio")

    app = web.Application()
    app.router.add_get("/a b/é.wav", answer)
    async with http_server(app) as base:
        assert await get(f"{base}/a b/é.wav?x=1&y=%2F") == b"audio"
    assert seen == [("/a%20b/%C3%A9.wav?x=1&y=%2F", base.removeprefix("http://"), "identity")]


async def test_https_checks_the_certificate_against_the_name(tmp_path):
    tls, ca_file = certificate(tmp_path, "localhost")
    async with http_server(site(a=b"audio"), tls=tls) as base:
        by_name = base.replace("127.0.0.1", "localhost") + "/a"
        trusting = source(ca_file=ca_file, allow_http=False)
        assert await get(by_name, trusting) == b"audio"
        assert await code_of(by_name) == "asset.unreachable"  # an unknown authority
        assert await code_of(f"{base}/a", trusting) == "asset.unreachable"  # another name


def test_a_ca_file_that_is_none_is_a_setting_that_is_wrong(tmp_path):
    with pytest.raises(ConfigError, match=r"assets\.ca_file"):
        source(ca_file=tmp_path / "none.pem")
    (tmp_path / "bad.pem").write_text("no certificate")
    with pytest.raises(ConfigError, match=r"assets\.ca_file"):
        source(ca_file=tmp_path / "bad.pem")


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (404, "asset.not_found"),
        (410, "asset.not_found"),
        (401, "asset.forbidden"),
        (403, "asset.forbidden"),
        (500, "asset.unreachable"),
        (503, "asset.unreachable"),
        (204, "asset.unreachable"),
        (206, "asset.unreachable"),
    ],
)
async def test_each_status_has_its_code(status, code):
    async with http_server(site(a=status)) as base:
        assert await code_of(f"{base}/a") == code


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("ftp://example.com/a.wav", "asset.scheme"),
        ("file:///etc/passwd", "asset.scheme"),
        ("https:///a.wav", "asset.uri"),
        ("https://user:word@example.com/a.wav", "asset.uri"),
        ("https://user@example.com/a.wav", "asset.uri"),
        ("https://[::1/a.wav", "asset.uri"),
        ("https://example.com:99999/a.wav", "asset.uri"),
    ],
)
async def test_a_url_that_cannot_be_meant(url, code):
    assert await code_of(url) == code


async def test_plain_http_needs_its_setting():
    assert await code_of("http://127.0.0.1/a", source(allow_http=False)) == "asset.scheme"


# ---- addresses and redirects


async def test_loopback_is_not_reached_by_default():
    async with http_server(site(a=b"audio")) as base:
        assert await code_of(f"{base}/a", source(Guard())) == "asset.blocked_address"


async def test_redirects_are_followed_three_times():
    pages = {"r3": "/r2", "r2": "/r1", "r1": "a", "a": b"audio", "r4": "/r3"}
    async with http_server(site(**pages)) as base:
        assert await get(f"{base}/r3") == b"audio"
        assert await code_of(f"{base}/r4") == "asset.unreachable"


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:{port}/secret",
        "http://[::ffff:127.0.0.1]:{port}/secret",
        "http://2130706433:{port}/secret",
        "http://0177.0.0.1:{port}/secret",
        "http://localhost:{port}/secret",
        "http://169.254.169.254/computeMetadata/v1/",
        "http://[fd00:ec2::254]/latest/",
        "//10.0.0.1/",
    ],
)
async def test_no_redirect_leads_inside(target):
    reached: list[str] = []

    async def secret(request: web.Request) -> web.Response:
        reached.append(request.path)
        return web.Response(body=b"secret")

    inside = web.Application()
    inside.router.add_get("/{path:.*}", secret)
    async with http_server(inside) as private:
        place = target.format(port=private.rpartition(":")[2])
        async with http_server(site(r=place, a=b"audio"), host="127.0.0.2") as base:
            fetcher = source(PretendPublic())
            assert await get(f"{base}/a", fetcher) == b"audio"
            assert await code_of(f"{base}/r", fetcher) == "asset.blocked_address"
    assert reached == []


@pytest.mark.parametrize("target", ["file:///etc/passwd", "gs://bucket/a.wav", "ftp://x/a"])
async def test_no_redirect_leads_to_another_scheme(target):
    async with http_server(site(r=target)) as base:
        assert await code_of(f"{base}/r") == "asset.scheme"


async def test_no_redirect_leads_from_https_to_http(tmp_path):
    tls, ca_file = certificate(tmp_path, "127.0.0.1")
    async with (
        http_server(site(a=b"audio")) as plain,
        http_server(site(r=f"{plain}/a"), tls=tls) as base,
    ):
        fetcher = source(ca_file=ca_file, allow_http=False)
        assert await code_of(f"{base}/r", fetcher) == "asset.scheme"


async def test_a_redirect_to_a_host_that_is_not_listed_is_refused():
    async with http_server(site(a=b"audio")) as base:
        other = f"{base}/a".replace("127.0.0.1", "localhost")
        async with http_server(site(r=other)) as first:
            fetcher = source(Guard(True, ("127.0.0.1",)))
            assert await get(f"{base}/a", fetcher) == b"audio"
            assert await code_of(f"{first}/r", fetcher) == "asset.forbidden"


async def test_a_redirect_to_nonsense_is_refused():
    async with http_server(site(r="http://[bad/")) as base:
        assert await code_of(f"{base}/r") == "asset.uri"


async def test_a_name_is_resolved_once_and_its_checked_address_is_used(monkeypatch):
    """A name that answers with another address the second time gains nothing by it."""
    lookups: list[str] = []
    real = socket.getaddrinfo

    def resolver(host, port, *args, **keywords):
        if host != "rebinding.example":
            return real(host, port, *args, **keywords)
        lookups.append(host)
        address = "127.0.0.2" if len(lookups) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    async with http_server(site(a=b"audio"), host="127.0.0.2") as base:
        monkeypatch.setattr(socket, "getaddrinfo", resolver)
        url = f"{base}/a".replace("127.0.0.2", "rebinding.example")
        assert await get(url, source(PretendPublic())) == b"audio"
    assert lookups == ["rebinding.example"]


# ---- size, time and broken answers


async def test_a_file_at_the_limit_is_taken_and_one_beyond_it_is_not():
    async with http_server(site(at=bytes(MAX_BYTES), beyond=bytes(MAX_BYTES + 1))) as base:
        assert len(await get(f"{base}/at")) == MAX_BYTES
        assert await code_of(f"{base}/beyond") == "asset.too_large"


async def test_two_gigabytes_are_refused_by_their_announcement():
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 2147483648\r\n\r\n"
    async with raw_server(head, then_hang=True) as base:
        assert await code_of(f"{base}/a") == "asset.too_large"


@pytest.mark.parametrize("head", [b"", b"Transfer-Encoding: chunked\r\n"])
async def test_a_body_without_announcement_is_counted_as_it_comes(head):
    body = bytes(MAX_BYTES + 1)
    if head:
        body = b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
    async with raw_server(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + body) as base:
        assert await code_of(f"{base}/a") == "asset.too_large"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nonly this",
    ],
)
async def test_a_body_that_is_cut_off_is_truncated(answer):
    async with raw_server(answer) as base:
        assert await code_of(f"{base}/a") == "asset.truncated"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_unreachable(answer):
    async with raw_server(answer) as base:
        assert await code_of(f"{base}/a") == "asset.unreachable"


async def test_a_packed_body_is_refused():
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b"
    async with raw_server(answer) as base:
        assert await code_of(f"{base}/a") == "asset.format"


async def test_nobody_there_is_unreachable():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert await code_of(f"http://127.0.0.1:{port}/a") == "asset.unreachable"


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 200 OK\r\nX-Slow", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"],
)
async def test_a_server_that_stops_in_the_middle_is_given_up(answer):
    async with raw_server(answer, then_hang=True) as base:
        assert await code_of(f"{base}/a", timeout_s=0.2) == "asset.timeout"


async def test_a_server_that_drips_is_given_up_all_the_same():
    """Each byte comes in time; the file as a whole does not."""

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(1000):
            await response.write(b"x")
            await asyncio.sleep(0.02)
        return response

    app = web.Application()
    app.router.add_get("/a", drip)
    async with http_server(app) as base:
        assert await code_of(f"{base}/a", timeout_s=0.3) == "asset.timeout"


async def test_closing_ends_a_fetch_that_waits():
    reached, over = asyncio.Event(), asyncio.Event()

    async def late(request: web.Request) -> web.Response:
        reached.set()
        await over.wait()
        return web.Response()

    app = web.Application()
    app.router.add_get("/a", late)
    async with http_server(app) as base:
        fetcher = source()
        waiting = asyncio.ensure_future(code_of(f"{base}/a", fetcher))
        await reached.wait()
        fetcher.close()
        assert await waiting == "asset.unreachable"
        assert await code_of(f"{base}/a", fetcher) == "asset.unreachable"
        over.set()
