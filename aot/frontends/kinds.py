"""Kinds of files that people try, by their first bytes, each with the next step that works. One table.

    b"ORTM" at 4     a model in ONNX Runtime's own format     take the .onnx file that it was made from

The suffix decides where the content does not (weights of an IR, some protobufs).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from zipfile import BadZipFile, ZipFile, is_zipfile

from aot.codegen.dataclass import dataclass
from aot.frontends.caffe.files import TEXT, WEIGHTS
from aot.runtime.errors import AotError, CorruptError, UnsupportedError, UsageError
from aot.runtime.loading.binary_file import FIRST_BYTES

Test = Callable[[bytes, Path], bool]
MAX_NAMES = 1 << 18  # entries of an archive that are looked at

WEIGHTS_BESIDE = "copy the weights of the same export beside the program, NAME.pdiparams: ls '{file}'"


@dataclass(frozen=True, slots=True)
class Kind:
    """`what` a file is and the `advice` that helps, with `{file}`, `{stem}` and `{folder}`. `matches(head, path)`."""

    what: str
    advice: str
    matches: Test
    error: type[AotError] = UnsupportedError


def refuse(kind: Kind, path: Path) -> AotError:
    """Return the error for a file of this kind; its advice is a note, too."""
    known = (
        "OpenVINO IR, ONNX, PyTorch, TensorFlow, TensorFlow Lite, Caffe, PaddlePaddle, GGUF and folders of Hugging Face"
    )
    return kind.error(
        f"{path.name or path.resolve().name}: {known} can be read, got {kind.what}",
        advice=kind.advice.format(file=path, stem=path.stem or path.resolve().stem, folder=path.parent),
    )


def foreign(head: bytes, path: Path) -> Kind | None:
    """Return the kind of a file that is neither IR nor ONNX, by its content; None if the content does not decide."""
    return next((kind for kind in (*BY_CONTENT, *BY_BOTH) if kind.matches(head, path)), None)


def named(head: bytes, path: Path) -> Kind:
    """Return the kind of a file by its suffix, for contents that do not decide."""
    return next((kind for kind in BY_SUFFIX if kind.matches(head, path)), OTHER)


def folder(path: Path) -> Kind:
    """Return the kind of a folder, by its entries."""
    return next((kind for kind in FOLDERS if kind.matches(b"", path)), FOLDER)


def _begins(*starts: bytes, at: int = 0) -> Test:
    return lambda head, path: head[at:].startswith(starts)


def _like(pattern: bytes) -> Test:
    """Return the test for a text that begins with this pattern, in letters of any case."""
    expression = re.compile(rb"\s*(?:%s)" % pattern, re.IGNORECASE)
    return lambda head, path: expression.match(head) is not None


def _ends(*suffixes: str) -> Test:
    return lambda head, path: path.name.lower().endswith(suffixes)


def _both(one: Test, other: Test) -> Test:
    return lambda head, path: one(head, path) and other(head, path)


def _zipped(*parts: str) -> Test:
    """Return the test for a zip with an entry that ends with each of these."""

    def matches(head: bytes, path: Path) -> bool:
        names = _entries(path) if head.startswith(ZIP) else []
        return bool(names) and all(any(n.endswith(part) for n in names) for part in parts)

    return matches


def _entries(path: Path) -> list[str]:
    """Return the first names in a zip; none if it cannot be read."""
    try:
        state = path.stat()
        return _read_entries(path, (state.st_ino, state.st_mtime_ns, state.st_size))
    except (BadZipFile, OSError, ValueError, NotImplementedError):
        return []


@lru_cache(maxsize=1)  # several formats ask for the names in one file
def _read_entries(path: Path, state: tuple[int, ...]) -> list[str]:
    del state
    with ZipFile(path) as archive:
        return archive.namelist()[:MAX_NAMES]


def _is_broken_zip(head: bytes, path: Path) -> bool:
    """True if a file begins as a zip archive, and its list of entries, which is at the end, cannot be read."""
    return head.startswith(ZIP) and not is_zipfile(path)


def _holds(*patterns: str) -> Test:
    return lambda head, path: all(any(path.glob(pattern)) for pattern in patterns)


def _is_safetensors(head: bytes, path: Path) -> bool:
    """True if 8 bytes give the length of a JSON header that follows."""
    return head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= path.stat().st_size - 8


def _is_of_language_model(head: bytes, path: Path) -> bool:
    """True for weights or a description in a folder that is a language model."""
    del head
    return path.suffix in (".safetensors", ".json") and is_language_model(path.parent)


def _is_text(head: bytes, path: Path) -> bool:
    del path
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head)  # the last character may be cut
    except UnicodeDecodeError:
        return False
    return all(c.isprintable() or c.isspace() for c in text)


def _weights_of_ir(head: bytes, path: Path) -> bool:
    del head
    return path.suffix.lower() == ".bin" and path.with_suffix(".xml").is_file()


def _is_mxnet(head: bytes, path: Path) -> bool:
    """True for the symbols of MXNet: JSON whose nodes have operations, `null` for inputs."""
    return path.suffix == ".json" and _like(rb'\{\s*"nodes"\s*:\s*\[\s*\{\s*"op"\s*:')(head, path)


def _is_kaldi(head: bytes, path: Path) -> bool:
    """True for a network of Kaldi's nnet1, 2 or 3, alone or after a transition model, binary or in text."""
    return _like(rb"(\0B)?\s*<(Nnet3?|TransitionModel|AffineTransform)>")(head, path)


SAVED_MODEL = ("saved_model.pb", "saved_model.pbtxt")
_GRAPH_TEXT = _like(
    rb"(#[^\n]*\n\s*)*(node|library|versions|meta_graphs|meta_info_def|saved_model_schema_version)\b\s*[:{]"
)


def is_tensorflow(head: bytes, path: Path) -> bool:
    """True for a graph of TensorFlow, by its content and its suffix: others begin with the same bytes."""
    name = path.name.lower()
    if name == SAVED_MODEL[0]:
        return head.startswith((b"\x08", b"\x12"))
    if name.endswith((".pb", ".meta")):
        return head.startswith(b"\x0a")
    return name.endswith(".pbtxt") and _GRAPH_TEXT(head, path)


def is_tflite(head: bytes) -> bool:
    """True if it begins as a file of TensorFlow Lite does: an offset, then the identifier."""
    return head[4:8] == b"TFL3"


def is_container(head: bytes, path: Path) -> bool:
    """True for a container of LiteRT-LM, or of MediaPipe, which is a zip with files of TensorFlow Lite in no folder."""
    if head.startswith(LITERT_LM):
        return True
    names = _entries(path) if head.startswith(ZIP) else []
    return bool(names) and (path.suffix == ".task" or any(n.endswith(".tflite") and "/" not in n for n in names))


def is_exported(head: bytes, path: Path) -> bool:
    """True for an archive of torch.export.save: a zip with a description of the archive and a model."""
    return _zipped("/archive_version")(head, path) and any("/models/" in name for name in _entries(path))


def is_caffe(path: Path) -> bool:
    """True for a network of Caffe in text or for the weights of one, by the suffix: their first bytes tell nothing."""
    return path.suffix in (TEXT, WEIGHTS)


def is_gguf(head: bytes) -> bool:
    """True if it begins as a language model in GGUF does."""
    return head.startswith(GGUF)


def is_language_model(path: Path) -> bool:
    """True for a folder of Hugging Face with a network's configuration and its weights in safetensors."""
    return (path / "config.json").is_file() and any((path / name).is_file() for name in SAFETENSORS)


SAFETENSORS = ("model.safetensors", "model.safetensors.index.json")  # the weights, or which files have them
LANGUAGE_MODEL = (".json", ".jinja", ".safetensors")  # suffixes of the files that are read in a folder with these
LITERT_LM = b"LITERTLM"
GGUF, ZIP = b"GGUF", b"PK\x03\x04"
VIA_MODEL_OPTIMIZER = (
    "convert it by the last Model Optimizer that reads it, pip install openvino-dev==2022.3 in an environment of its "
    "own, mo --input_model '{file}', and compile the .xml that it writes"
)
VIA_OPENVINO = "convert it in Python: openvino.save_model(openvino.convert_model('{file}'), '{stem}.xml')"
FROM_TORCH = (
    "load it in Python and export it: torch.export.save(torch.export.export(model.eval(), inputs), '{stem}.pt2')"
)
FROM_SCRIPT = (
    "export its module: torch.export.save(torch.export.export(model.eval(), inputs), '{stem}.pt2'); "
    "without it: torch.onnx.export(torch.jit.load('{file}'), inputs, '{stem}.onnx', dynamo=False)"
)
FROM_EXPORTED = (
    "export it again with PyTorch 2.9 or newer: torch.export.save(torch.export.export(model, inputs), '{stem}.pt2')"
)
FROM_TRAINING = "export the model as ONNX from where it was trained"
FROM_KERAS = (
    "export it in Python: keras.saving.load_model('{file}').export('{stem}'), then aot compile '{stem}', its SavedModel"
)
EXPORT_HUB = "export the network with its weights: optimum-cli export onnx --model NAME FOLDER"
COPY_AGAIN = "make or copy the file again"
DECRYPT = "decrypt it, or copy it again"
DOWNLOAD = "download the file itself, and look at its first bytes: head -c 100 '{file}'"

BY_CONTENT = (
    Kind(
        "a Git LFS pointer, which stands for the file",
        "fetch the file itself: git lfs pull --include '{file}'",
        _begins(b"version https://git-lfs.github.com/spec/"),
        CorruptError,
    ),
    Kind("a web page", DOWNLOAD, _like(rb"<!doctype html|<html|<head|<script"), CorruptError),
    Kind("an error message of a server", DOWNLOAD, _like(rb"<\?xml[^>]*>\s*<error|<error"), CorruptError),
    Kind(
        "a compiled file",
        "run it: aot run '{file}' x.npy, or look at it: aot info '{file}'",
        _begins(*FIRST_BYTES),
        UsageError,
    ),
    Kind("a file of a Hugging Face model", "give its folder: aot compile '{folder}'", _is_of_language_model),
    Kind("a model in ONNX Runtime's own format", "take the .onnx file that it was made from", _begins(b"ORTM", at=4)),
    Kind("weights in a format before GGUF", EXPORT_HUB, _begins(b"lmgg", b"tjgg", b"ggjt")),
    Kind("weights in Keras's HDF5 format", FROM_KERAS, _begins(b"\x89HDF\r\n\x1a\n")),
    Kind("an array of NumPy", "it is an input: aot run MODEL '{file}'", _begins(b"\x93NUMPY")),
    Kind(
        "a program exported by an older PyTorch (torch.export)",
        FROM_EXPORTED,
        _zipped("serialized_exported_program.json"),
    ),
    Kind("a TorchScript model", FROM_SCRIPT, _zipped("data.pkl", "constants.pkl")),
    Kind("a PyTorch checkpoint, which holds weights and no network", FROM_TORCH, _zipped("data.pkl")),
    Kind("a Keras model", FROM_KERAS, _zipped("config.json", ".h5")),
    Kind("a Core ML package", FROM_TRAINING, _zipped("Manifest.json")),
    Kind("arrays of NumPy", "they are inputs: aot run MODEL '{file}'", _zipped(".npy")),
    Kind("a zip archive that is cut short or damaged", COPY_AGAIN, _is_broken_zip, CorruptError),
    Kind("a zip archive", "unpack it: unzip '{file}', then compile the .xml or .onnx file in it", _begins(ZIP)),
    Kind("a compressed file", "unpack it: gunzip '{file}'", _begins(b"\x1f\x8b")),
    Kind("a compressed file", "unpack it: unzstd '{file}'", _begins(b"\x28\xb5\x2f\xfd")),
    Kind("a compressed file", "unpack it: unxz '{file}'", _begins(b"\xfd7zXZ\0")),
    Kind("a compressed file", "unpack it: bunzip2 '{file}'", _begins(b"BZh")),
    Kind("a compressed file", "unpack it: unlz4 '{file}'", _begins(b"\x04\x22\x4d\x18")),
    Kind("an archive", "unpack it: 7z x '{file}'", _begins(b"7z\xbc\xaf\x27\x1c", b"Rar!")),
    Kind("an archive", "unpack it: tar xf '{file}'", _begins(b"ustar", at=257)),
    Kind(
        "a PyTorch checkpoint, which holds weights and no network",
        FROM_TORCH,
        _begins(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."),
    ),
    Kind(
        "pickled Python objects",
        "load them where they were made, and export the model as ONNX: skl2onnx, torch.onnx",
        lambda head, path: head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05" and len(head) > 2,
    ),
    Kind("a TensorRT engine", "take the .onnx file that it was made from", _begins(b"ptrt", b"ftrt")),
    Kind("a PDF document", DOWNLOAD, _begins(b"%PDF")),
    Kind(
        "an encrypted file",
        "decrypt it first: gpg -d '{file}', openssl enc -d",
        lambda head, path: head.startswith((b"Salted__", b"-----BEGIN PGP", b"age-encryption.org")),
    ),
    Kind("safetensors, which hold weights and no network", EXPORT_HUB, _is_safetensors),
)

BY_BOTH = (
    Kind("an MXNet network", VIA_MODEL_OPTIMIZER, _is_mxnet),
    Kind("weights of an MXNet network", VIA_MODEL_OPTIMIZER, _begins(b"\x12\x01\0\0\0\0\0\0")),
    Kind("a Kaldi model", VIA_MODEL_OPTIMIZER, _is_kaldi),
    Kind("a Core ML model", FROM_TRAINING, _ends(".mlmodel")),
    Kind("the weights of an IR", "give the .xml file beside it: {stem}.xml", _weights_of_ir),
    Kind("an XGBoost model", "convert it: onnxmltools.convert_xgboost", _like(rb'\{\s*"learner"')),
    Kind("a LightGBM model", "convert it: onnxmltools.convert_lightgbm", _like(rb"tree\s+version=")),
    Kind(
        "JSON",
        "give the .xml or .onnx file of the network; this describes something else",
        _both(_like(rb'\{\s*(?:"|\})|\[\s*[\[{"\d\]]'), _is_text),
    ),
)

OTHER = Kind("something else", "OpenVINO reads other formats, too: " + VIA_OPENVINO, lambda head, path: True)
BY_SUFFIX = (
    Kind("a text", "give the .xml or .onnx file of the network", _is_text),
    Kind("no XML: the file is encrypted or damaged", DECRYPT, _ends(".xml"), CorruptError),
    Kind("a PyTorch file that is damaged or encrypted", FROM_TORCH, _ends(".pt", ".pth", ".pt2"), CorruptError),
    Kind("a TensorFlow Lite file that is damaged or encrypted", DECRYPT, _ends(".tflite"), CorruptError),
    Kind("a GGUF file that is damaged or encrypted", DECRYPT, _ends(".gguf"), CorruptError),
    Kind("a Keras file that is damaged or encrypted", FROM_KERAS, _ends(".h5", ".keras"), CorruptError),
    Kind(
        "weights without a network",
        "give the .xml or .onnx file of the network",
        _ends(".bin", ".safetensors", ".data", ".weights", ".ckpt"),
    ),
    Kind(
        "a TensorFlow.js, ncnn, MNN or RKNN model",
        FROM_TRAINING,
        _ends(".param", ".mnn", ".rknn", ".engine", ".plan", ".om", ".dlc", ".hef"),
    ),
)

FOLDER = Kind("a folder", "give the .xml or .onnx file of the network", lambda head, path: True)
FOLDERS = (
    Kind("a Core ML package", FROM_TRAINING, _holds("Manifest.json", "Data")),
    Kind("a folder of an OpenVINO model", "give the .xml file in it: ls '{file}'/*.xml", _holds("*.xml", "*.bin")),
    Kind("a folder of an ONNX model", "give the .onnx file in it: ls '{file}'/*.onnx", _holds("*.onnx")),
    Kind(
        "a folder of a Hugging Face model",
        "optimum-cli export onnx --model '{file}' '{stem}-onnx'",
        _holds("config.json", "*.safetensors"),
    ),
    Kind(
        "a folder of a Hugging Face model",
        "language models as safetensors: AutoModelForCausalLM.from_pretrained('{file}').save_pretrained('{stem}-new'); "
        "others: optimum-cli export onnx --model '{file}' '{stem}-onnx'",
        _holds("config.json", "*.bin"),
    ),
    Kind("a folder of a GGUF model", "give the .gguf file in it: ls '{file}'/*.gguf", _holds("*.gguf")),
    Kind("a folder of a Caffe model", "give the .prototxt file in it: ls '{file}'/*.prototxt", _holds("*.prototxt")),
    Kind(
        "a folder of several PaddlePaddle models, or of none",
        "give the .json or .pdmodel file of the network: ls '{file}'",
        _holds("*.pdiparams"),
    ),
    Kind("a folder of a PaddlePaddle model without weights", WEIGHTS_BESIDE, _holds("inference.json")),
    Kind("a folder of a PaddlePaddle model without weights", WEIGHTS_BESIDE, _holds("*.pdmodel")),
    Kind(
        "a folder of a Hugging Face model without weights",
        "download all of it: hf download NAME --local-dir '{file}'",
        _holds("config.json"),
    ),
)
