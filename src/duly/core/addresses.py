"""Which network addresses belong to everybody: neither this machine, nor a private network, nor a reserved range.

Pure; resolves no name.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

_NAT64: Final = IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = IPv6Network("::/96")


def is_public(address: str) -> bool:
    """Whether this IP address may be told something on a stranger's word; False for what is no address at all."""
    try:
        # A zone is a link of this machine.
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv4Address):
        return _is_public(parsed)
    if parsed.scope_id is not None:
        return False
    inner = _inside(parsed)
    return _is_public(parsed if inner is None else inner) and (inner is None or parsed not in _COMPATIBLE)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _inside(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that a packet to this one would reach through a gateway."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or address in _COMPATIBLE:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None
