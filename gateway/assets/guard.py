"""Which addresses and hosts an audio file may come from.

An agent's output decides what is fetched, so a URI is untrusted: it must not turn the gateway
into a door to the network that it stands in.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from gateway.errors import AssetError

Address = IPv4Address | IPv6Address

_METADATA = frozenset({IPv4Address("169.254.169.254"), IPv6Address("fd00:ec2::254")})
"""Where clouds hand out credentials. No setting opens these."""
_NAT64 = IPv6Network("64:ff9b::/96")


def embedded(address: Address) -> Address:
    """The IPv4 address that an IPv6 address leads to (mapped, 6to4, NAT64, Teredo), or itself."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or (int(address) >> 32 == 0 and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def is_public(address: Address) -> bool:
    """Whether an address is one of the open internet."""
    address = embedded(address)
    if isinstance(address, IPv6Address) and address.is_site_local:
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved)


@dataclass(frozen=True, slots=True)
class Guard:
    """The operator's limits on where files come from."""

    allow_private_addresses: bool = False
    allowed_hosts: tuple[str, ...] = ()

    def check_host(self, host: str, where: str) -> None:
        """Raises AssetError asset.forbidden for a host that `allowed_hosts` does not name."""
        name = host.lower().rstrip(".")
        for allowed in self.allowed_hosts:
            pattern = allowed.lower()
            if name == pattern or (pattern.startswith("*.") and name.endswith(pattern[1:])):
                return
        self._refuse_unlisted(f"host {host}", where)

    def check_bucket(self, bucket: str, where: str) -> None:
        """Raises AssetError asset.forbidden for a bucket that `allowed_hosts` does not name."""
        if f"gs://{bucket}" not in {allowed.rstrip("/") for allowed in self.allowed_hosts}:
            self._refuse_unlisted(f"bucket {bucket}", where)

    def _refuse_unlisted(self, what: str, where: str) -> None:
        if self.allowed_hosts:
            raise AssetError(
                "asset.forbidden",
                f"{what} is not allowed",
                where=where,
                hint="add it to assets.allowed_hosts",
            )

    def check_address(self, address: Address, where: str) -> None:
        """Raises AssetError asset.blocked_address for an address that must not be reached."""
        target = embedded(address)
        never = target in _METADATA or target.is_multicast or target.is_unspecified
        if never or not (self.allow_private_addresses or is_public(target)):
            raise AssetError(
                "asset.blocked_address",
                f"{address} is not an address of the open internet",
                where=where,
                hint="assets.allow_private_addresses opens private networks",
            )

    def resolve(self, host: str, port: int, where: str) -> Sequence[Address]:
        """All addresses of a host, every one of them checked; connect to these and no others.

        Raises AssetError: asset.unreachable if there are none, asset.blocked_address if any one
        is not allowed (a name that also has a private address is not trusted with its public one).
        """
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise AssetError(
                "asset.unreachable", f"host {host} has no address: {error}", where=where
            ) from None
        addresses: list[Address] = []
        for _, _, _, _, target in found:
            # A link-local address comes with its interface: fe80::1%eth0.
            address = ip_address(str(target[0]).partition("%")[0])
            self.check_address(address, where)
            if address not in addresses:
                addresses.append(address)
        return addresses
