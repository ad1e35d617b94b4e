"""What a file says for people: its description, names of metadata, labels and normalisation of inputs."""

from __future__ import annotations

from aot.frontends.tflite.nets import Net, Nets


def described(nets: Nets, net: Net) -> dict[str, str]:
    """Facts for the graph's `rt_info`."""
    del net
    found: dict[str, str] = {}
    text = nets.model.text("Description")
    if text:
        found["description"] = text
    return found
