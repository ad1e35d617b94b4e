"""Papers of a library: bills that the standard's schema accepts, statements that compiling again proves, signatures."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from typer.testing import CliRunner

from aot import cli

pytestmark = pytest.mark.default_code  # tests share a library, which they compile again: each with the same effort
MODEL = Path(__file__).parents[3] / "examples" / "digits" / "model.xml"


def aot(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli.app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result.stdout + result.stderr


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("supply") / "m.so"
    aot("compile", MODEL, "-o", path)
    return path


@pytest.mark.parametrize("sources", [True, False])
def test_a_bill_is_valid_and_names_all_hashes(library: Path, tmp_path: Path, sources: bool) -> None:
    from cyclonedx.schema import SchemaVersion  # noqa: PLC0415 (two seconds, which no other test needs)
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415

    options = ("--model", MODEL) if sources else ()
    aot("sbom", library, *options, "-o", tmp_path / "m.cdx.json")
    text = (tmp_path / "m.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_7).validate_str(text) is None
    made = json.loads(text)
    main = made["metadata"]["component"]
    assert (made["specVersion"], main["type"], main["name"]) == ("1.7", "machine-learning-model", "digits")
    assert main["hashes"] == [{"alg": "SHA-256", "content": sha256(library)}]
    assert main["modelCard"]["modelParameters"]["inputs"] == [{"format": "image: f32[1,1,8,8]"}]
    parts = {part["name"]: part["hashes"][0]["content"] for part in made["components"]}
    files = {p.name: sha256(p) for p in (MODEL, MODEL.with_suffix(".bin"))} if sources else {}
    assert {name: digest for name, digest in parts.items() if name != "weights"} == files
    assert {tool["name"] for tool in made["metadata"]["tools"]["components"]} == {"aot", "llvm", "llvmlite"}
    depends = {d["ref"]: d.get("dependsOn", []) for d in made["dependencies"]}
    assert sorted(depends["m.so"]) == sorted(part["bom-ref"] for part in made["components"])
    assert aot("sbom", library, *options) == text  # no time, no random number


def test_a_statement_is_true_of_its_files_only(library: Path, tmp_path: Path) -> None:
    aot("provenance", library, "--model", MODEL, "-o", tmp_path / "p.json")
    made = json.loads((tmp_path / "p.json").read_text())
    assert made["subject"] == [{"name": "m.so", "digest": {"sha256": sha256(library)}}]
    assert made["predicateType"] == "https://slsa.dev/provenance/v1"
    sources = made["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert {s["name"]: s["digest"]["sha256"] for s in sources} == {
        p.name: sha256(p) for p in (MODEL, MODEL.with_suffix(".bin"))
    }
    aot("provenance", library, "--model", MODEL, "--check", tmp_path / "p.json")
    made["subject"][0]["digest"]["sha256"] = "0" * 64
    for text, says in ((json.dumps(made), "subject"), ("[]", "statement"), ("{", "JSON")):
        (tmp_path / "wrong.json").write_text(text)
        assert says in aot("provenance", library, "--model", MODEL, "--check", tmp_path / "wrong.json", code=4)


def test_no_statement_for_a_library_of_another_model(library: Path, tmp_path: Path) -> None:
    (tmp_path / "model.xml").write_bytes(MODEL.read_bytes())
    weights = bytearray(MODEL.with_suffix(".bin").read_bytes())
    weights[2] ^= 1
    (tmp_path / "model.bin").write_bytes(weights)
    assert "another" in aot("provenance", library, "--model", tmp_path / "model.xml", code=4)


def keys(folder: Path, key: Any) -> tuple[Path, Path]:
    private, public = folder / "key.pem", folder / "key.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public


def test_an_oms_signature_is_accepted_by_its_own_tool(library: Path, tmp_path: Path) -> None:
    private, public = keys(tmp_path, ec.generate_private_key(ec.SECP256R1()))
    model = tmp_path / "m.so"
    model.write_bytes(library.read_bytes())
    assert "got none" in aot("verify", model, public, "--format", "oms", code=4)
    aot("sign", model, private, "--format", "oms")
    assert "whole" in aot("verify", model, public, "--format", "oms")
    tool = [sys.executable, "-m", "model_signing", "verify", "key", str(model)]
    options = ["--signature", f"{model}.oms.sig", "--public_key", str(public)]
    done = subprocess.run([*tool, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    model.write_bytes(library.read_bytes() + b"\0")
    assert "signed" in aot("verify", model, public, "--format", "oms", code=4)


def test_keys_of_other_kinds_are_refused(library: Path, tmp_path: Path) -> None:
    private, public = keys(tmp_path, ed25519.Ed25519PrivateKey.generate())
    model = tmp_path / "m.so"
    model.write_bytes(library.read_bytes())
    assert "secp256r1" in aot("sign", model, private, "--format", "oms", code=2)
    assert not Path(f"{model}.oms.sig").exists()
    assert "secp256r1" in aot("verify", model, public, "--format", "oms", code=2)
    other, _ = keys(tmp_path, ec.generate_private_key(ec.SECP256R1()))
    aot("sign", model, other, "--format", "oms")
    _, public = keys(tmp_path, ec.generate_private_key(ec.SECP256R1()))
    aot("verify", model, public, "--format", "oms", code=4)
