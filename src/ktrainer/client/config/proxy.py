"""Which proxy the environment names for a server: HTTPS_PROXY, HTTP_PROXY and NO_PROXY, read once.

NO_PROXY may hold names (with their subdomains), addresses and networks, each with a port or without; the address of a
service in a cluster is usually excluded by its network.
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ktrainer.client.config.config import ConfigError
from ktrainer.client.config.urls import is_url

if TYPE_CHECKING:
    from collections.abc import Mapping
    from ipaddress import IPv4Address, IPv6Address


def find_proxy_problem(proxy: str) -> str | None:
    """Why no proxy can be reached at this URL; None if one may be. The URL may hold a password, so it is not quoted."""
    if is_url(proxy):
        return None
    scheme, separator, _ = proxy.partition("://")
    if separator and scheme not in {"http", "https"}:
        return "only http:// and https:// proxies are supported"
    return "not a URL of the form http://host:port"


def proxy_of(server: str, environ: Mapping[str, str]) -> str:
    """The URL of the proxy for this server; empty where it is to be reached directly. Raises ConfigError."""
    url = urlsplit(server)
    host = url.hostname or ""
    port = url.port or (443 if url.scheme == "https" else 80)
    proxy = _either(environ, f"{url.scheme}_proxy")
    if not proxy or _is_excluded(host, port, _either(environ, "no_proxy")):
        return ""
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if problem := find_proxy_problem(proxy):
        raise ConfigError("environment", f"{url.scheme}_proxy".upper(), problem)
    return proxy


def _either(environ: Mapping[str, str], name: str) -> str:
    return (environ.get(name.upper()) or environ.get(name) or "").strip()


def _is_excluded(host: str, port: int, no_proxy: str) -> bool:
    address = _address_of(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(entry, host, port, address) for entry in no_proxy.lower().replace(",", " ").split())


def _matches(entry: str, host: str, port: int, address: IPv4Address | IPv6Address | None) -> bool:
    if entry == "*":
        return True
    name, colon, entry_port = entry.rpartition(":")
    if colon and entry_port.isdecimal() and (":" not in name or name.endswith("]")):
        if int(entry_port) != port:
            return False
        entry = name
    if address is not None:
        try:
            return address in ip_network(entry.strip("[]"), strict=False)
        except ValueError:
            return False
    domain = entry.removeprefix("*").removeprefix(".")
    return host.endswith(f".{domain}") or (host == domain and not entry.startswith((".", "*")))


def _address_of(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
