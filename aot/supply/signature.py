"""Ed25519 signatures of compiled models: the public key tells whether a file is the one that its owner signed.

m.so.sig   64 bytes: signature of the SHA-256 of m.so, which holds the hash of its weights, inside or beside it
"""

from __future__ import annotations

import hashlib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from runtime.errors import CorruptError, MissingError, UsageError
from runtime.loading.library import verify as verify_contents
from runtime.regular import open_file, read_file

_CONTEXT = b"aot compiled model 1\0"  # a signature of something else is none of a model


def signature_of(library: Path) -> Path:
    """Path of the signature of a library: `m.so.sig`."""
    return library.with_name(library.name + ".sig")


def sign(library: Path, key: Path) -> Path:
    """Write the signature of `library` with the private key in the PEM file `key`; gives its path.

    CorruptError if the library or its weights are damaged, UsageError for a key that is none of Ed25519.
    """
    verify_contents(library)
    made = signature_of(library)
    made.write_bytes(_key(key, private=True).sign(_message(library)))
    return made


def verify(library: Path, key: Path) -> None:
    """CorruptError unless the owner of the public key in `key` signed `library` and its weights."""
    public = _key(key, private=False)
    try:
        signature = read_file(signature_of(library), "verify")
    except FileNotFoundError:
        raise CorruptError(f"verify: {library}: must have a signature beside it, got none") from None
    try:
        public.verify(signature, _message(library))
    except import_module("cryptography.exceptions").InvalidSignature:
        rule = f"must be signed with the key {key}"
        raise CorruptError(f"verify: {library}: {rule}, got another file or signature") from None
    verify_contents(library)


def _message(library: Path) -> bytes:
    with open_file(library, "sign") as stream:
        return _CONTEXT + hashlib.file_digest(stream, "sha256").digest()


def _key(path: Path, private: bool) -> Any:
    key = pem_key(path, private)
    kinds = import_module("cryptography.hazmat.primitives.asymmetric.ed25519")
    if not isinstance(key, kinds.Ed25519PrivateKey if private else kinds.Ed25519PublicKey):
        raise UsageError(f"sign: {path}: must be an Ed25519 key, got {type(key).__name__}")
    return key


def pem_key(path: Path, private: bool) -> Any:  # the package is optional, so are its types
    """Return the key in a PEM file; UsageError if it has none, or a password, MissingError without the package."""
    if find_spec("cryptography") is None:
        raise MissingError("sign: needs the package cryptography: pip install 'cryptography>=43'")
    serialization = import_module("cryptography.hazmat.primitives.serialization")
    data, kind = read_file(path, "sign"), "private" if private else "public"
    try:
        return serialization.load_pem_private_key(data, None) if private else serialization.load_pem_public_key(data)
    except (ValueError, TypeError) as error:
        raise UsageError(f"sign: {path}: must be a {kind} key in PEM, without a password, got {error}") from None
