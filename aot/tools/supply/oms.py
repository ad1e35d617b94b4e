"""Signatures in the format of OpenSSF Model Signing (OMS), which `model_signing verify` of others accepts.

m.so.oms.sig   a Sigstore bundle with an in-toto statement: hashes of the library, signed with an elliptic curve
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from aot.runtime.atomic import replacing
from aot.runtime.errors import MissingError, UsageError
from aot.runtime.loading.library import verify as verify_contents
from aot.tools.supply.signature import missing, pem_key, refused

_MAKE_KEY = (
    "openssl ecparam -name prime256v1 -genkey -noout -out key.pem makes a key, openssl pkey -in key.pem -pubout -out "
    "key.pub its public part; without --format oms keys are Ed25519"
)
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
    path = oms_signature_of(library)
    with replacing(path) as new:
        signing.Config().use_elliptic_key_signer(private_key=key).sign(library, new)
    return path


def verify_oms(library: Path, key: Path) -> None:
    """CorruptError unless the owner of the public key signed `library`."""
    verifying = _package("verifying")
    _check_key(key, private=False)
    signature = oms_signature_of(library)
    if not signature.exists():
        raise missing(library, signature)
    try:
        config = verifying.Config().use_elliptic_key_verifier(public_key=key)
        config.verify(library, signature)
    except (ValueError, TypeError) as error:
        raise refused(library, key, str(error)) from None
    verify_contents(library)


def _check_key(path: Path, private: bool) -> None:
    """Raise UsageError unless a PEM file has a key of a curve that the format knows."""
    key = pem_key(path, private)
    name = str(getattr(getattr(key, "curve", None), "name", type(key).__name__))
    if name not in CURVES:
        rule = f"must be a key of one of {', '.join(CURVES)}"
        raise UsageError(f"{'sign' if private else 'verify'}: {path}: {rule}, got {name}", advice=_MAKE_KEY)


def _package(part: str) -> Any:
    if find_spec("model_signing") is None:
        raise MissingError("sign: --format oms needs the package model-signing: pip install 'aot[sign]'")
    return import_module(f"model_signing.{part}")
