"""Ed25519 signatures of compiled models: the public key verifies that a file is the one that its owner signed.

m.so.sig   64 bytes: signature of the SHA-256 of m.so, which holds the hash of its weights, inside or beside it
"""

from __future__ import annotations

import hashlib
from importlib import import_module
from importlib.util import find_spec
from io import BufferedReader
from pathlib import Path
from typing import Any

from aot.runtime.atomic import replacing
from aot.runtime.errors import CorruptError, MissingError, UsageError
from aot.runtime.loading.library import verify as verify_contents
from aot.runtime.regular import open_file, read_file

_CONTEXT = b"aot compiled model 1\0"  # a signature of something else is none of a model
_MAKE_KEY = (
    "openssl genpkey -algorithm ed25519 -out key.pem makes a key, openssl pkey -in key.pem -pubout -out key.pub its "
    "public part; --format oms takes keys of P-256, P-384 and P-521"
)


def signature_of(library: Path) -> Path:
    """Path of the signature of a library: `m.so.sig`."""
    return library.with_name(library.name + ".sig")


def sign(library: Path, key: Path) -> Path:
    """Write the signature of `library` with the private key in the PEM file `key`; gives its path.

    CorruptError if the library or its weights are damaged, UsageError for a key that is none of Ed25519.
    """
    verify_contents(library)
    path = signature_of(library)
    with open_file(library, "sign") as stream:
        signature = _key(key, private=True).sign(_message(stream))
    with replacing(path) as new:
        new.write_bytes(signature)
    return path


def verify(library: Path, key: Path) -> None:
    """CorruptError unless the owner of the public key in `key` signed `library` and its weights."""
    with open_file(library, "verify") as stream:
        verify_stream(stream, library, key)
    verify_contents(library)


def verify_stream(stream: BufferedReader, library: Path, key: Path) -> None:
    """CorruptError unless the owner of `key` signed the open file `stream` of `library`; its weights are not read."""
    public = _key(key, private=False)
    try:
        signature = read_file(signature_of(library), "verify")
    except FileNotFoundError:
        raise missing(library, signature_of(library)) from None
    try:
        public.verify(signature, _message(stream))
    except import_module("cryptography.exceptions").InvalidSignature:
        raise refused(library, key) from None


def missing(library: Path, signature: Path) -> CorruptError:
    """Return the error for a library without a signature."""
    advice = f"aot sign {library.name} key.pem makes one; else copy {signature.name} from where it was made"
    return CorruptError(f"verify: {library}: must have a signature beside it, got none", advice=advice)


def refused(library: Path, key: Path, reason: str = "") -> CorruptError:
    """Return the error for a signature that the key does not accept, with the reason if there is one."""
    return CorruptError(
        f"verify: {library}: must be signed with the key {key}, got another file, key or signature{reason and ': '}"
        f"{reason}",
        advice="copy library, signature and public key again from whoever signed it, and do not load it before",
    )


def _message(stream: BufferedReader) -> bytes:
    stream.seek(0)
    return _CONTEXT + hashlib.file_digest(stream, "sha256").digest()


def _key(path: Path, private: bool) -> Any:
    key = pem_key(path, private)
    kinds = import_module("cryptography.hazmat.primitives.asymmetric.ed25519")
    if not isinstance(key, kinds.Ed25519PrivateKey if private else kinds.Ed25519PublicKey):
        name = "sign" if private else "verify"
        raise UsageError(f"{name}: {path}: must be an Ed25519 key, got {type(key).__name__}", advice=_MAKE_KEY)
    return key


def pem_key(path: Path, private: bool) -> Any:  # the package is optional, so are its types
    """Return the key in a PEM file; UsageError if it has none, or a password, MissingError without the package."""
    if find_spec("cryptography") is None:
        raise MissingError("sign: needs the package cryptography: pip install 'aot[sign]'")
    serialization = import_module("cryptography.hazmat.primitives.serialization")
    operation, kind = ("sign", "private") if private else ("verify", "public")
    data = read_file(path, operation)
    try:
        return serialization.load_pem_private_key(data, None) if private else serialization.load_pem_public_key(data)
    except (ValueError, TypeError) as error:
        rule = f"must be a {kind} key in PEM, without a password"
        raise UsageError(f"{operation}: {path}: {rule}, got {error}", advice=_MAKE_KEY) from None
