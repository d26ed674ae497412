"""Decide which IP addresses on the internet may be reached, and resolve names to them.

Rule 1: a name is refused if any of its addresses is not public: a name that leads into a private
    network is no accident.
Rule 2: an address that carries another one, such as an IPv4 address in IPv6, is judged by the one
    that it carries, or refused.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import anyio

from bot.core.errors import FetchFailed

IPAddress = IPv4Address | IPv6Address

Resolver = Callable[[str], Awaitable[list[str]]]
"""Return all addresses of a host's name. Raises ``OSError`` if there are none."""

_NAT64 = IPv6Network("64:ff9b::/96")
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NOT_PUBLIC = (
    IPv6Network("2001::/32"),  # Teredo, which carries an IPv4 address
    IPv6Network("2002::/16"),  # 6to4, the same
    IPv6Network("3fff::/20"),  # documentation
)
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})  # before an IPv4 address
_METADATA = frozenset(
    # Services for a cloud's machines at addresses that look public.
    {ip_address("168.63.129.16")}
)


async def system_resolver(name: str) -> list[str]:
    """Return the addresses that the system's resolver has for a name."""
    found = await anyio.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def is_public(address: IPAddress) -> bool:
    """Return whether an address belongs to the public internet and to one machine there."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address in _NAT64:
            return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
        carries = (int(address) >> 32) & 0xFFFFFFFF in _ISATAP
        if carries or address.scope_id or address not in _GLOBAL_UNICAST:
            return False
        if any(address in network for network in _NOT_PUBLIC):
            return False
    special = address.is_multicast or address.is_unspecified or address.is_reserved
    return address.is_global and not special and address not in _METADATA


def literal_address(host: str) -> IPAddress | None:
    """Return the address that a host in a URL is; None if it is a name.

    Raises:
        FetchFailed: It is an address in a form that programs read differently, such as
            ``2130706433``, ``0x7f.1`` or ``127.1``.
    """
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        pass
    last = host.rstrip(".").rpartition(".")[2].lower()
    if last.isdigit() or last.startswith("0x"):
        raise FetchFailed(f"{host[:80]!r} is no host: write an IP address as four numbers")
    return None


async def resolve_public(
    host: str, resolve: Resolver, allowed: Callable[[IPAddress], bool] = lambda _: False
) -> list[IPAddress]:
    """Return all addresses of a host, each of them public.

    Raises:
        FetchFailed: The name cannot be resolved, or one of its addresses is not public.
    """
    literal = literal_address(host)
    try:
        found = [literal] if literal is not None else list(map(ip_address, await resolve(host)))
    except (OSError, UnicodeError) as error:
        raise FetchFailed(f"the host {host[:80]!r} is not known") from error
    except ValueError as error:
        raise FetchFailed(f"the host {host[:80]!r} has no usable address") from error
    if not found:
        raise FetchFailed(f"the host {host[:80]!r} is not known")
    for address in found:
        if not is_public(address) and not allowed(address):
            raise FetchFailed(f"{host[:80]!r} is not on the public internet")
    return found
