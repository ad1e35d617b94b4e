"""Run by Model Optimizer's Python: its IR, or its error, of each case that `chapters` wrote.

It imports nothing of this project. Caffe's messages there need PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python.
"""

import os
import sys
import traceback
from pathlib import Path

import onnx
import tensorflow
from openvino.runtime import serialize
from openvino.tools.mo import convert_model

LOADED = onnx, tensorflow  # once, for all cases
MODELS = {"onnx": "model.onnx", "tf": "model.pb", "caffe": "net.caffemodel"}


def convert(place, case):
    own = case / "my_extensions"
    config = ",".join(map(str, own.glob("*.json")))
    options = {"transformations_config": config} if config else {}
    options |= {"extensions": str(own), "use_legacy_frontend": True, "compress_to_fp16": False}
    if case.parent.name == "caffe":
        options |= {"input_proto": str(place / "net.prototxt")}
    serialize(convert_model(str(place / MODELS[case.parent.name]), **options), str(case / "mo.xml"))


def main(place):
    for case in sorted(p for p in place.glob("*/*") if p.is_dir()):
        if (case / "mo.xml").is_file() or (case / "mo.txt").is_file():
            continue
        child = os.fork()  # classes of extensions stay registered in a process
        if child == 0:
            try:
                convert(place, case)
            except Exception:
                (case / "mo.txt").write_text(traceback.format_exc())
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
