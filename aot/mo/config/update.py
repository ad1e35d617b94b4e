"""Writes the inputs and outputs that the sub-graphs of a configuration file have in a model: `aot config`."""

from __future__ import annotations

import json
from pathlib import Path

from aot.frontends import read_model
from aot.mo.bridge.to_mo import exported
from aot.mo.config.registry import parse_custom_replacement_config_file


def updated(model: Path, config: Path) -> str:
    """Return a configuration file with the fields `inputs` and `outputs` of its entries, where they were absent.

    Error for a sub-graph that the model does not have.
    """
    graph = exported(read_model(model), "front")
    entries = parse_custom_replacement_config_file(str(config))
    for entry in entries:
        entry.update_custom_replacement_attributes(graph)
    return json.dumps([entry.get_config_file_representation() for entry in entries], indent=4, sort_keys=True) + "\n"
