"""Which addresses and hosts are open to a URI that an agent made up."""

from ipaddress import ip_address

import pytest

from gateway.assets.guard import Guard, embedded, is_public
from gateway.errors import AssetError

INSIDE = [
    "127.0.0.1", "127.8.9.10", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "169.254.1.1", "100.64.0.1", "100.100.100.200", "0.0.0.0", "0.1.2.3",
    "192.0.2.1", "198.18.0.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
    "::", "::1", "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::1",
]  # fmt: skip
OPEN = ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]


@pytest.mark.parametrize("text", INSIDE)
def test_an_address_inside_is_refused_in_every_spelling(text):
    assert not is_public(ip_address(text))
    with pytest.raises(AssetError) as caught:
        Guard().check_address(ip_address(text), "https://x/")
    assert caught.value.code == "asset.blocked_address"


@pytest.mark.parametrize("text", OPEN)
def test_an_address_of_the_internet_is_allowed(text):
    assert is_public(ip_address(text))
    Guard().check_address(ip_address(text), "https://x/")


@pytest.mark.parametrize("text", ["127.0.0.1", "10.1.2.3", "::1", "fd00::1", "::ffff:10.0.0.1"])
def test_the_setting_opens_private_networks(text):
    Guard(allow_private_addresses=True).check_address(ip_address(text), "http://x/")


@pytest.mark.parametrize(
    "text",
    ["169.254.169.254", "::ffff:169.254.169.254", "fd00:ec2::254", "224.0.0.1", "0.0.0.0", "::"],
)
def test_no_setting_opens_the_metadata_service_or_addresses_of_nobody(text):
    with pytest.raises(AssetError) as caught:
        Guard(allow_private_addresses=True).check_address(ip_address(text), "http://x/")
    assert caught.value.code == "asset.blocked_address"


def test_a_plain_ipv6_address_stands_for_itself():
    assert embedded(ip_address("2606:4700::1111")) == ip_address("2606:4700::1111")
    assert embedded(ip_address("::ffff:1.2.3.4")) == ip_address("1.2.3.4")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "localhost", "::1"]
)
def test_loopback_is_refused_however_the_host_is_written(host):
    with pytest.raises(AssetError) as caught:
        Guard().resolve(host, 443, "https://x/")
    assert caught.value.code == "asset.blocked_address"


def test_a_name_with_one_private_address_is_not_trusted(monkeypatch):
    def resolver(*_args, **_keywords):
        return [(2, 1, 6, "", ("8.8.8.8", 443)), (2, 1, 6, "", ("10.0.0.1", 443))]

    monkeypatch.setattr("socket.getaddrinfo", resolver)
    with pytest.raises(AssetError) as caught:
        Guard().resolve("two-faced.example", 443, "https://x/")
    assert caught.value.code == "asset.blocked_address"


@pytest.mark.parametrize("host", ["a" * 70 + ".example", "..", "no host"])
def test_a_host_that_is_none_is_unreachable(host):
    with pytest.raises(AssetError) as caught:
        Guard().resolve(host, 443, "https://x/")
    assert caught.value.code == "asset.unreachable"


def test_without_a_list_all_hosts_and_buckets_are_allowed():
    Guard().check_host("anything.example", "")
    Guard().check_bucket("anything", "")


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("audio.example.com", True),
        ("AUDIO.example.com.", True),
        ("cdn.example.org", True),
        ("a.b.example.org", True),
        ("example.org", False),
        ("evilexample.org", False),
        ("audio.example.com.evil.net", False),
    ],
)
def test_the_list_of_hosts_is_exact_or_by_domain(host, allowed):
    guard = Guard(allowed_hosts=("audio.example.com", "*.example.org", "gs://prompts"))
    if allowed:
        guard.check_host(host, "")
    else:
        with pytest.raises(AssetError) as caught:
            guard.check_host(host, "")
        assert caught.value.code == "asset.forbidden"


def test_the_list_of_buckets():
    guard = Guard(allowed_hosts=("audio.example.com", "gs://prompts/"))
    guard.check_bucket("prompts", "")
    for other in ("prompts2", "audio.example.com"):
        with pytest.raises(AssetError) as caught:
            guard.check_bucket(other, "")
        assert caught.value.code == "asset.forbidden"
