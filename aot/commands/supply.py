"""`aot sbom`, `aot provenance`, `aot sign`, `aot verify`: papers of a library for its users."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from aot.commands.compare import DIFFERENT
from aot.commands.line import arguments as arg
from aot.commands.line.declared import Exit, argument, echo, option
from aot.options import CompileOptions
from aot.runtime.atomic import replacing
from aot.runtime.errors import UsageError
from aot.runtime.loading.library import verify as check_contents
from aot.tools.supply import signature


class Format(StrEnum):
    ED25519, OMS = "ed25519", "oms"


Signed = Annotated[Format, option("--format", help="ed25519: aot's own; oms: OpenSSF Model Signing, curve P-256")]
Paper = Annotated[Path | None, option("-o", "--output", help="Default: print it")]


def sign(library: arg.Library, key: arg.Key, format: Signed = Format.ED25519, debug: arg.Debug = False) -> None:
    """Sign a compiled model with a private key. Writes LIBRARY.sig, or LIBRARY.oms.sig."""
    if format is Format.OMS:
        from aot.tools.supply.oms import sign_oms

        echo(sign_oms(library, key))
        return
    echo(signature.sign(library, key))


def verify(
    library: arg.Library,
    key: Annotated[Path | None, argument(exists=True, dir_okay=False, help="Ed25519 key, PEM")] = None,
    format: Signed = Format.ED25519,
    recheck: Annotated[
        Path | None,
        option(exists=True, metavar="MODEL", help="Compile the model again, and repeat the comparison of --certify"),
    ] = None,
    *,
    options: CompileOptions,
    debug: arg.Debug = False,
) -> None:
    """Check that a compiled model is whole, and its signature. Nothing of it is run.

    With --recheck, compile its model again and repeat the comparison that --certify made. Exit code 1 if one differs.
    """
    if key is None and recheck is None:
        raise UsageError("verify: needs a public key, --recheck MODEL, or both, got neither")
    if key is not None and format is Format.OMS:
        from aot.tools.supply.oms import verify_oms

        verify_oms(library, key)
    elif key is not None:
        signature.verify(library, key)
    if key is not None:
        echo(f"{library}: whole, and signed with {key}")
    if recheck is not None:
        _repeat_certificate(library, recheck, options)


def _repeat_certificate(library: Path, model: Path, options: CompileOptions) -> None:
    from aot.commands.line.progress import Watch
    from aot.tools.comparing.certify import recheck

    manifest = check_contents(library)
    with Watch(sys.stderr) as watch:
        differences = recheck(manifest, model, replace(options, on_event=watch))
    if differences:
        echo("\n".join([f"{library}: the certificate is another one here", *(f"  {line}" for line in differences)]))
        raise Exit(DIFFERENT)
    echo(f"{library}: whole, and compiling {model} gives its code and its certificate")


def sbom(
    library: arg.Library,
    model: Annotated[Path | None, option(exists=True, help="The model it was made of, for its hashes")] = None,
    output: Paper = None,
    debug: arg.Debug = False,
) -> None:
    """Write the bill of materials of a compiled model. CycloneDX 1.7, as JSON."""
    from aot.tools.supply.sbom import sbom as bill

    _write(bill(library, model), output, library, *([model] if model else []))


def provenance(
    library: arg.Library,
    model: Annotated[Path, option(exists=True, help="The model it was made of")],
    output: Paper = None,
    check: Annotated[
        Path | None, option(exists=True, dir_okay=False, help="Check a statement instead of making one")
    ] = None,
    *,
    options: CompileOptions,
    debug: arg.Debug = False,
) -> None:
    """State which model a library is made of. Compiles it again; in-toto, with SLSA's predicate."""
    from aot.tools.supply.provenance import check_provenance
    from aot.tools.supply.provenance import provenance as statement

    if check is not None:
        check_provenance(check, library, model, options)
        echo(f"{check}: true of {library} and {model}")
        return
    _write(statement(library, model, options), output, library, model)


def _write(facts: dict[str, object], output: Path | None, *inputs: Path) -> None:
    text = json.dumps(facts, indent=1, sort_keys=True, default=str) + "\n"
    if output is None:
        echo(text, nl=False)
        return
    from aot.compilation.outputs import check_outputs

    check_outputs([output], *inputs)
    with replacing(output) as new:
        new.write_text(text, encoding="utf-8")
