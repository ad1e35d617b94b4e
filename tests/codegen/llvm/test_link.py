"""The linked file: one exported symbol, no dependency but libc, equal bytes, readable by the system's loader."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import runtime
from aot.codegen.llvm.build import Built, build
from aot.codegen.llvm.host import parse_target
from aot.codegen.llvm.linking.elf_writer import Data, write_data_object
from aot.codegen.llvm.linking.linker import find_linker, link
from aot.codegen.llvm.object.optimize import compile_module
from aot.codegen.machines import MACHINES
from aot.codegen.platforms import LINUX
from aot.codegen.target import Target
from aot.runtime.errors import InternalError, PlatformError
from aot.runtime.loading.elf import ElfFile
from tests.programs import built, chain, varying


@pytest.fixture(scope="module")
def small() -> Built:
    return built(chain())


def test_a_library_exports_one_symbol_and_needs_libc_only(small: Built, tmp_path: Path) -> None:
    path = tmp_path / "m.so"
    small.write_shared(path)
    with path.open("rb") as stream:
        symbols = ElfFile(stream, "m.so").dynamic_symbols()
    assert [s.name for s in symbols if s.defined] == [f"aot_query_{small.tag}"]
    assert {s.name for s in symbols if not s.defined} <= set(LINUX.functions)


def test_the_same_bytes_twice(small: Built, tmp_path: Path) -> None:
    small.write_shared(tmp_path / "a.so")
    again = built(chain())
    again.write_shared(tmp_path / "b.so")
    assert again.code == small.code
    assert (tmp_path / "a.so").read_bytes() == (tmp_path / "b.so").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.so", "b.so"]


def test_another_model_has_another_tag(small: Built) -> None:
    assert built(chain(factor=3.0)).tag != small.tag
    assert built(chain(n=999)).tag != small.tag


def test_equal_kernels_are_emitted_once(small: Built) -> None:
    many = built(chain(calls=20))
    assert len(many.code) < len(small.code) + 20 * 400


def test_weights_are_aligned_in_the_file(small: Built, tmp_path: Path) -> None:
    small.write_shared(tmp_path / "m.so")
    with (tmp_path / "m.so").open("rb") as stream:
        sections = {s.name: s for s in ElfFile(stream, "m.so").sections}
    assert sections[".aot.weights"].offset % 4096 == 0
    assert sections[".aot.weights"].size == 128


def test_object_for_static_linking(small: Built, tmp_path: Path) -> None:
    """Two models in one program do not clash."""
    for i, model in enumerate((small, built(varying()))):
        model.write_object(tmp_path / f"{i}.o")
    done = subprocess.run(
        find_linker("x86_64").command([tmp_path / "0.o", tmp_path / "1.o"], tmp_path / "both.so", ()),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with (tmp_path / "both.so").open("rb") as stream:
        symbols = ElfFile(stream, "both.so").dynamic_symbols()
    assert len([s for s in symbols if s.defined and s.name.startswith("aot_")]) == 2


def test_other_machine() -> None:
    """An object for aarch64 needs no tools of that machine."""
    other = build(chain(), Target.parse("aarch64"))
    assert other.code[18] == 183
    assert other.manifest["machine"] == 183


def test_no_linker_says_what_to_do(small: Built, tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="got none of no-such-linker") as info:
        small.write_shared(tmp_path / "m.so", linker=find_linker("x86_64", "no-such-linker"))
    assert "apt install binutils" in " ".join(info.value.__notes__)


def test_no_linker_for_another_machine_names_one_that_links_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The binutils of Debian link for the machine that they run on alone."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "ziglang", None)
    with pytest.raises(PlatformError, match="a linker for aarch64 is needed") as info:
        find_linker("aarch64")
    assert "apt install lld;" in " ".join(info.value.__notes__)
    assert "aot[cross]" in " ".join(info.value.__notes__)


def test_any_version_of_libc_will_do(small: Built, tmp_path: Path) -> None:
    small.write_shared(tmp_path / "m.so")
    with (tmp_path / "m.so").open("rb") as stream:
        file = ElfFile(stream, "m.so")
    assert ".gnu.version_r" not in {s.name for s in file.sections}
    assert b"libc.so.6\0" in (tmp_path / "m.so").read_bytes()


def test_a_function_that_libc_lacks_is_named(tmp_path: Path) -> None:
    text = "declare void @expf()\ndefine void @f() {\n  call void @expf()\n  ret void\n}\n"
    (tmp_path / "f.o").write_bytes(compile_module(text, parse_target("native")))
    with pytest.raises(PlatformError, match="expf"):
        link([tmp_path / "f.o"], tmp_path / "f.so", find_linker("x86_64"), MACHINES["x86_64"], LINUX)


def test_compiler_as_linker(small: Built, tmp_path: Path) -> None:
    driver = shutil.which("cc")
    if driver is None:
        pytest.skip("needs the compiler cc in the path: another one is no linker by itself")
    small.write_shared(tmp_path / "m.so", linker=find_linker("x86_64", driver))
    np.testing.assert_array_equal(runtime.load(tmp_path / "m.so")(np.ones(1000, np.float32))[0], 4)


def test_failed_link_leaves_nothing(small: Built, tmp_path: Path) -> None:
    broken = Built(small.tag, small.arch, b"no object", small.manifest, small.constants, small.constant_bytes)
    with pytest.raises(PlatformError, match="failed"):
        broken.write_shared(tmp_path / "m.so")
    assert list(tmp_path.iterdir()) == []


def test_writer_places_blocks_and_zeros() -> None:
    stream = io.BytesIO()
    blocks = [(0, np.arange(3, dtype=np.int32)), (64, np.float64(1.5).reshape(()))]
    write_data_object(stream, 62, [Data(".a", "a", 5, 8, [(0, b"hello")]), Data(".b", "b", 100, 4096, blocks)])
    data = stream.getvalue()
    assert data[64:69] == b"hello"
    assert data[4096:4108] == blocks[0][1].tobytes()
    assert data[4108:4160] == bytes(52)
    assert data[4160:4168] == np.float64(1.5).tobytes()
    with pytest.raises(InternalError, match="overlap"):
        write_data_object(io.BytesIO(), 62, [Data(".a", "a", 8, 8, [(0, b"hello"), (4, b"you")])])


def test_runs_in_memory_without_a_linker() -> None:
    program = (
        "import numpy as np\n"
        "from tests.programs import built, chain\n"
        "from codegen.llvm.jit import load\n"
        "from runtime.loading.library import Library\n"
        "from runtime.model import CompiledModel\n"
        "model = built(chain(calls=3)); code = load(model)\n"
        "library = Library.at(code.query, model.manifest, keep=code, save=model.write_shared)\n"
        "for threads in (1, 2):\n"
        "    y = CompiledModel(library, threads)(np.ones(1000, np.float32))[0]\n"
        "    assert (y == 8).all()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[3], env={"PATH": "/nowhere"})
