"""Bill of materials of a library: CycloneDX 1.7, with the model card of a machine-learning model (ML-BOM).

m.so (machine-learning-model)  ->  m.xml, m.bin (data)        weights (data)
made by aot, llvmlite, LLVM
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

from aot.runtime.describe import about_lines
from aot.runtime.errors import MissingError
from aot.runtime.loading.library import verify
from aot.runtime.loading.manifest import Manifest, TensorInfo
from aot.runtime.version import VERSION
from aot.tools.supply.materials import Material, material, materials

Json = dict[str, Any]
LICENCES = ("license", "licence", "license_name")


def sbom(library: Path, model: Path | None = None) -> Json:
    """Return the bill of a library as JSON; the files of `model`, if it is given, are its sources.

    Equal files give equal bills: there is no time in it, and its serial number is made of the hash. CorruptError for a
    damaged library, MissingError without cyclonedx-python-lib.
    """
    if find_spec("cyclonedx") is None:
        raise MissingError("sbom: needs the package cyclonedx-python-lib: pip install 'aot[sbom]'")
    manifest = verify(library)
    own = material(library)
    bom = _bom(manifest, own, materials(model) if model is not None else [])
    output = import_module("cyclonedx.output")
    schema = import_module("cyclonedx.schema")
    writer = output.make_outputter(bom, schema.OutputFormat.JSON, schema.SchemaVersion.V1_7)
    bill: Json = json.loads(writer.output_as_string())
    del bill["metadata"]["timestamp"]
    bill["metadata"]["component"]["modelCard"] = _card(manifest)  # the library has no class for it
    return bill


def _bom(manifest: Manifest, own: Material, sources: Sequence[Material]) -> Any:
    """Return the bill as the package's objects, which are not typed here: it is optional."""
    kinds, model = import_module("cyclonedx.model.component"), import_module("cyclonedx.model")
    kind, component = kinds.ComponentType, kinds.Component

    def hashes(digest: str) -> list[Any]:
        return [model.HashType(alg=model.HashAlgorithm.SHA_256, content=digest)]

    def properties(facts: Iterable[tuple[str, object]]) -> list[Any]:
        return [model.Property(name=f"aot:{name}", value=str(value)) for name, value in facts]

    pairs = [(name, value) for name, value in manifest.options.items() if value]
    pairs += [("content-hash", manifest.json["hash"]), ("triple", manifest.json["triple"])]
    pairs += [(f"about:{line.partition(': ')[0]}", line.partition(": ")[2]) for line in about_lines(manifest)]
    main = component(
        name=manifest.name or own.name,
        type=kind.MACHINE_LEARNING_MODEL,
        bom_ref=own.name,
        version=str(manifest.json["hash"])[:12],
        hashes=hashes(own.sha256),
        licenses=_licences(manifest),
        properties=properties(pairs),
    )
    parts = [
        component(name=s.name, type=kind.DATA, bom_ref=f"source/{s.name}", hashes=hashes(s.sha256)) for s in sources
    ]
    weights = cast("dict[str, object]", manifest.json.get("embedded") or manifest.json.get("external") or {})
    if weights:
        storage = "embedded" if "embedded" in manifest.json else "external"
        facts = {"bom_ref": "weights", "properties": properties([("bytes", weights["bytes"]), ("place", storage)])}
        parts.append(component(name="weights", type=kind.DATA, hashes=hashes(str(weights["sha256"])), **facts))
    tools = cast("dict[str, str]", manifest.json["toolchain"])
    bom = import_module("cyclonedx.model.bom").Bom(serial_number=uuid5(NAMESPACE_URL, own.sha256), components=parts)
    bom.metadata.component = main
    for name, version in (("aot", VERSION), *sorted(tools.items())):
        tool = component(name=name, type=kind.APPLICATION, bom_ref=f"tool/{name}", version=version)
        bom.metadata.tools.components.add(tool)
    bom.register_dependency(main, parts)
    return bom


def _licences(manifest: Manifest) -> list[Any]:
    """Return the licence that the model's file names, if it does, under the name that it has there."""
    lines = [line.partition(": ") for line in about_lines(manifest)]
    names = [
        text for name, _, text in lines if name.rpartition(".")[2].lower() in ("license", "licence", "license_name")
    ]
    return [import_module("cyclonedx.model.license").DisjunctiveLicense(name=name) for name in names[:1]]


def _card(manifest: Manifest) -> Json:
    def tensors(infos: Iterable[TensorInfo]) -> list[Json]:
        return [{"format": f"{info.name}: {info}"} for info in infos]

    return {
        "modelParameters": {
            "modelArchitecture": manifest.name,
            "inputs": tensors(manifest.inputs),
            "outputs": tensors(manifest.outputs),
        }
    }
