"""Makes the keys that go into Secrets: real ones for the manager, and placeholders for what is only shown."""

from __future__ import annotations

from typing import Final

from ktrainer.framework.dependencies import CurveKeys, SshKeys

PLACEHOLDER: Final = "<generated>"

_Z85: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def make_ssh_keys() -> SshKeys:
    """A new pair of ECDSA keys on the curve P-521; takes a few milliseconds the first time."""
    # Loading cryptography takes longer than all else that a command which shows no keys does.
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP521R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return SshKeys(private.decode(), public.decode() + "\n")


def make_curve_keys() -> CurveKeys:
    """A new pair of Curve25519 keys."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    key = X25519PrivateKey.generate()
    return CurveKeys(public=z85(key.public_key().public_bytes_raw()), secret=z85(key.private_bytes_raw()))


def show_ssh_keys() -> SshKeys:
    """What stands for a pair of SSH keys."""
    return SshKeys(PLACEHOLDER, PLACEHOLDER)


def show_curve_keys() -> CurveKeys:
    """What stands for a pair of CURVE keys."""
    return CurveKeys(PLACEHOLDER, PLACEHOLDER)


def z85(data: bytes) -> str:
    """Spell bytes, a multiple of four, in ZeroMQ's base 85 (rfc.zeromq.org/spec/32)."""
    text = []
    for start in range(0, len(data), 4):
        number = int.from_bytes(data[start : start + 4], "big")
        text += [_Z85[number // 85**place % 85] for place in (4, 3, 2, 1, 0)]
    return "".join(text)
