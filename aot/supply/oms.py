"""Signatures in the format of OpenSSF Model Signing (OMS), which `model_signing verify` of others accepts.

m.so.oms.sig   a Sigstore bundle with an in-toto statement: hashes of the library, signed with an elliptic curve
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from aot.supply.signature import pem_key
from runtime.errors import CorruptError, MissingError, UsageError
from runtime.loading.library import verify as verify_contents

CURVES = ("secp256r1", "secp384r1", "secp521r1")  # P-256, P-384, P-521


def oms_signature_of(library: Path) -> Path:
    """Path of the OMS signature of a library: `m.so.oms.sig`."""
    return library.with_name(library.name + ".oms.sig")


def sign_oms(library: Path, key: Path) -> Path:
    """Write the signature of `library` with the private key in a PEM file; gives its path.

    CorruptError for a damaged library, UsageError for a key that is none of the curves P-256, P-384 and P-521.
    """
    verify_contents(library)
    signing = _package("signing")
    _check_key(key, private=True)
    made = oms_signature_of(library)
    signing.Config().use_elliptic_key_signer(private_key=key).sign(library, made)
    return made


def verify_oms(library: Path, key: Path) -> None:
    """CorruptError unless the owner of the public key signed `library`."""
    verifying = _package("verifying")
    _check_key(key, private=False)
    signature = oms_signature_of(library)
    if not signature.exists():
        raise CorruptError(f"verify: {library}: must have a signature beside it, got none")
    try:
        config = verifying.Config().use_elliptic_key_verifier(public_key=key)
        config.verify(library, signature)
    except (ValueError, TypeError) as error:
        rule = f"must be signed with the key {key}"
        raise CorruptError(f"verify: {library}: {rule}, got another file, key or signature: {error}") from None
    verify_contents(library)


def _check_key(path: Path, private: bool) -> None:
    """Raise UsageError unless a PEM file has a key of a curve that the format knows."""
    key = pem_key(path, private)
    name = str(getattr(getattr(key, "curve", None), "name", type(key).__name__))
    if name not in CURVES:
        raise UsageError(f"sign: {path}: must be a key of one of {', '.join(CURVES)}, got {name}")


def _package(part: str) -> Any:
    if find_spec("model_signing") is None:
        raise MissingError("sign: --format oms needs the package model-signing: pip install 'aot[sign]'")
    return import_module(f"model_signing.{part}")
