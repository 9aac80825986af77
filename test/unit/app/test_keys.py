import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ktrainer.app.keys import make_curve_keys, make_ssh_keys, show_curve_keys, show_ssh_keys, z85


def test_ssh_keys_should_be_a_pair_on_the_curve_p521() -> None:
    keys = make_ssh_keys()
    assert keys.private.startswith("-----BEGIN EC PRIVATE KEY-----\n")
    private = serialization.load_pem_private_key(keys.private.encode(), None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    assert private.curve.name == "secp521r1"
    public = serialization.load_ssh_public_key(keys.public.encode())
    assert public == private.public_key()
    assert keys.public.startswith("ecdsa-sha2-nistp521 ")
    assert keys.public.endswith("\n")


def test_no_two_pairs_should_be_the_same() -> None:
    assert make_ssh_keys().private != make_ssh_keys().private
    assert make_curve_keys().secret != make_curve_keys().secret


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs OpenSSH")
def test_ssh_itself_should_accept_the_keys(tmp_path: Path) -> None:
    keys = make_ssh_keys()
    file = tmp_path / "id_rsa"
    file.write_text(keys.private)
    file.chmod(0o600)
    derived = subprocess.run(["ssh-keygen", "-y", "-f", str(file)], capture_output=True, text=True, check=True).stdout
    assert derived.split()[:2] == keys.public.split()[:2]


def test_curve_keys_should_be_spelled_in_forty_characters() -> None:
    keys = make_curve_keys()
    assert (len(keys.public), len(keys.secret)) == (40, 40)
    assert keys.public != keys.secret


def test_z85_should_be_as_its_specification_says() -> None:
    assert z85(bytes([0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B])) == "HelloWorld"


def test_placeholders_should_give_nothing_away() -> None:
    assert show_ssh_keys().private == show_ssh_keys().public == "<generated>"
    assert show_curve_keys().public == show_curve_keys().secret == "<generated>"
