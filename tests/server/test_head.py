"""Request heads, byte by byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.server.head import HeadError, canonical, check_upgrade, parse, refuse_early

SOUND = (
    b"GET /a%20b?x=1&access_token=t HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\n"
    b"Upgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
)


def test_what_a_head_says() -> None:
    head = parse(SOUND)
    assert (head.method, head.path, head.query) == ("GET", "/a%20b", "x=1&access_token=t")
    assert head.is_upgrade
    assert head.query_value("access_token") == "t"
    assert head.query_value("none") == ""
    assert head.get("host") == "h"
    check_upgrade(head)


def test_a_plain_request_is_no_upgrade() -> None:
    assert not parse(b"GET / HTTP/1.1\r\nConnection: close").is_upgrade
    assert not parse(b"GET / HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade").is_upgrade


def test_no_header_hides_another_of_its_name() -> None:
    head = parse(
        b"GET / HTTP/1.1\r\nX-Forwarded-For: 127.0.0.1\r\nA: 1\r\nx-forwarded-for: 192.0.2.1"
    )
    assert head.fields() == {"x-forwarded-for": "127.0.0.1, 192.0.2.1", "a": "1"}


def test_an_absolute_address_is_its_path() -> None:
    assert parse(b"GET http://host:80/x?y=1 HTTP/1.1").path == "/x"


def test_the_canonical_head_is_one_that_reads_back_the_same() -> None:
    head = parse(canonical(parse(SOUND)).removesuffix(b"\r\n\r\n"))
    assert head.path == "/a%20b"
    assert head.query == ""
    assert head.tokens("connection") == {"upgrade"}
    check_upgrade(head)


@pytest.mark.parametrize("raw", [b"", b"GET", b"G\x00T / HTTP/1.1", b"GET / HTTP/1.1\r\n: x"])
def test_malformed_heads(raw: bytes) -> None:
    with pytest.raises(HeadError):
        parse(raw)


@given(st.binary(max_size=300) | st.text(alphabet="GET /HTP1.:\r\nab", max_size=80))
def test_only_head_errors_escape(raw: bytes | str) -> None:
    data = raw if isinstance(raw, bytes) else raw.encode()
    try:
        refuse_early(data)
        head = parse(data)
        check_upgrade(head)
        canonical(head)
    except HeadError as error:
        assert error.status >= 400  # noqa: PT017 - most inputs fail, some need not
