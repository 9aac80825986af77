import pytest

from ktrainer.client.config.config import ConfigError
from ktrainer.client.config.proxy import proxy_of


@pytest.mark.parametrize(
    ("server", "environ", "expected"),
    [
        ("https://api:6443", {}, ""),
        ("https://api:6443", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://api:6443", {"https_proxy": " http://p:1 "}, "http://p:1"),
        ("https://api:6443", {"HTTPS_PROXY": "p:1"}, "http://p:1"),
        ("https://api:6443", {"HTTP_PROXY": "http://p:1"}, ""),
        ("http://api:8080", {"HTTP_PROXY": "http://p:1"}, "http://p:1"),
        ("https://localhost:6443", {"HTTPS_PROXY": "http://p:1"}, ""),
        ("https://127.0.0.9:6443", {"HTTPS_PROXY": "http://p:1"}, ""),
        ("https://[::1]:6443", {"HTTPS_PROXY": "http://p:1"}, ""),
    ],
)
def test_the_proxy_should_be_that_of_the_scheme(server: str, environ: dict[str, str], expected: str) -> None:
    assert proxy_of(server, environ) == expected


@pytest.mark.parametrize(
    ("proxy", "message"),
    [
        ("socks5://me:secret@p:1", "only http"),
        ("http://me:secret@[::1", "not a URL"),
        ("http://", "not a URL"),
        ("me:secret", "not a URL"),
        ("p..example:1", "not a URL"),
    ],
)
def test_a_proxy_that_cannot_be_used_should_be_named_where_it_is_needed(proxy: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"environment: HTTPS_PROXY: {message}") as caught:
        proxy_of("https://api:6443", {"HTTPS_PROXY": proxy})
    assert "secret" not in str(caught.value)
    assert proxy_of("https://api:6443", {"HTTPS_PROXY": proxy, "NO_PROXY": "api"}) == ""


@pytest.mark.parametrize(
    ("server", "no_proxy", "is_direct"),
    [
        ("https://api.example", "*", True),
        ("https://api.example", "example", True),
        ("https://api.example", ".example", True),
        ("https://api.example", "*.example", True),
        ("https://api.example", "API.Example", True),
        ("https://example", "example", True),
        ("https://example", ".example", False),
        ("https://api.example", "other, api.example", True),
        ("https://api.example", "other api.example", True),
        ("https://api.example", "i.example", False),
        ("https://api.example", "", False),
        ("https://api.example:6443", "api.example:6443", True),
        ("https://api.example:6443", "api.example:443", False),
        ("https://api.example", "api.example:443", True),
        ("https://10.1.2.3", "10.0.0.0/8", True),
        ("https://10.1.2.3", "10.1.2.3", True),
        ("https://10.1.2.3:6443", "10.1.2.3:6443", True),
        ("https://11.1.2.3", "10.0.0.0/8", False),
        ("https://10.1.2.3", "nonsense/8", False),
        ("https://api.example", "10.0.0.0/8", False),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", True),
        ("https://[fd00::1]:6443", "[fd00::1]:1", False),
        ("https://[fd00::1]:6443", "10.0.0.0/8", False),
    ],
)
def test_exceptions_should_be_reached_directly(server: str, no_proxy: str, is_direct: bool) -> None:
    environ = {"HTTPS_PROXY": "http://p:1", "NO_PROXY": no_proxy}
    assert (proxy_of(server, environ) == "") == is_direct
