"""Signatures: of this file, by this key, with these weights, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from aot import cli
from aot.codegen.llvm.build import build
from aot.codegen.llvm.host import parse_target
from aot.runtime.describe import hint
from aot.runtime.errors import CorruptError, UsageError
from aot.tools.supply.signature import sign, verify
from tests.programs import chain

ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519", reason="needs the extra sign")
serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")


def keys(folder: Path, name: str) -> tuple[Path, Path]:
    key = ed25519.Ed25519PrivateKey.generate()
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    pem, kinds = serialization.Encoding.PEM, serialization
    private.write_bytes(key.private_bytes(pem, kinds.PrivateFormat.PKCS8, kinds.NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(pem, kinds.PublicFormat.SubjectPublicKeyInfo))
    return private, public


@pytest.mark.parametrize("external", [False, True])
def test_sign_and_verify(tmp_path: Path, external: bool) -> None:
    path, (private, public) = tmp_path / "m.so", keys(tmp_path, "a")
    build(chain(), parse_target("native"), external=external).write_shared(path)
    with pytest.raises(CorruptError, match="got none"):
        verify(path, public)
    assert sign(path, private) == tmp_path / "m.so.sig"
    verify(path, public)
    with pytest.raises(CorruptError, match="got another file, key or signature"):
        verify(path, keys(tmp_path, "b")[1])
    changed = path.with_suffix(".weights") if external else path
    data = bytearray(changed.read_bytes())
    data[-1] ^= 1
    changed.write_bytes(data[:-1] if external else data)
    with pytest.raises(CorruptError):
        verify(path, public)


def test_wrong_keys(tmp_path: Path) -> None:
    build(chain(), parse_target("native")).write_shared(tmp_path / "m.so")
    private, public = keys(tmp_path, "a")
    with pytest.raises(UsageError, match=r"sign: .*must be a private key in PEM") as caught:
        sign(tmp_path / "m.so", public)
    assert "openssl genpkey -algorithm ed25519" in hint(caught.value)
    with pytest.raises(UsageError, match=r"verify: .*must be a public key in PEM") as caught:
        verify(tmp_path / "m.so", private)
    assert "openssl pkey -in key.pem -pubout" in hint(caught.value)


def test_a_library_without_a_signature_and_one_of_others(tmp_path: Path) -> None:
    build(chain(), parse_target("native")).write_shared(tmp_path / "m.so")
    _, public = keys(tmp_path, "a")
    with pytest.raises(CorruptError, match="must have a signature") as caught:
        verify(tmp_path / "m.so", public)
    assert "aot sign m.so key.pem" in hint(caught.value)
    (tmp_path / "m.so.sig").write_bytes(b"none")
    with pytest.raises(CorruptError, match="must be signed with the key") as caught:
        verify(tmp_path / "m.so", public)
    assert "from whoever signed it" in hint(caught.value)


def test_commands_sign_and_verify(tmp_path: Path) -> None:
    build(chain(), parse_target("native")).write_shared(tmp_path / "m.so")
    private, public = map(str, keys(tmp_path, "a"))
    run = CliRunner().invoke
    assert run(cli.app, ["sign", str(tmp_path / "m.so"), private]).exit_code == 0
    assert run(cli.app, ["verify", str(tmp_path / "m.so"), public]).exit_code == 0
    (tmp_path / "m.so.sig").write_bytes(bytes(64))
    assert run(cli.app, ["verify", str(tmp_path / "m.so"), public]).exit_code == 4
