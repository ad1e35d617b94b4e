"""The C header says what `aot.runtime.abi` says, and a C program runs two models with it."""

from __future__ import annotations

import ctypes
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from aot.codegen.ir.loops import Alloc, Kernel, Space, dense
from aot.codegen.ir.program import Program
from aot.codegen.llvm.header import checked_name, header_text, name_from
from aot.codegen.llvm.jit import load
from aot.runtime import abi
from aot.runtime.errors import UsageError
from aot.runtime.loading.library import Library
from tests.compilers import compiler
from tests.programs import built, chain, positives, running_sum

PROGRAM = """
#define _GNU_SOURCE
#include <stdlib.h>
#include "a.h"
#include "b.h"
static float x[1000] __attribute__((aligned(64))), y[1000] __attribute__((aligned(64)));
static int run(const struct aot_model *m, void *pool, float wanted) {
    const void *in[] = {x};
    void *out[] = {y}, *state = aligned_alloc(64, 128);
    void *arena = aligned_alloc(64, (m->arena_size(0, 2) + 63) / 64 * 64);
    for (int i = 0; i < 32; i++) ((float *)state)[i] = 0;
    struct aot_request r = {in, out, 0, arena, state, pool, 2, 0};
    for (int i = 0; i < 1000; i++) x[i] = 1, y[i] = 0;
    int bad = m->infer(&r) != 0 || y[0] != wanted || y[7] != wanted;
    r.arena = (char *)arena + 8;
    return bad || m->infer(&r) != 1 || !*m->error_text(1) || !m->error_text(99);
}
int main(void) {
    const struct aot_model *a = AQUERY(AOT_ABI), *b = BQUERY(AOT_ABI);
    if (AQUERY(AOT_ABI + 1) || a->bytes != sizeof *a) return 2;
    void *pool = a->pool_create(2);
    int bad = run(a, pool, 4) || run(b, pool, 1) || run(a, 0, 4);
    a->pool_destroy(pool);
    return bad;
}
"""


GROWING = """
#define _GNU_SOURCE
#include <stdlib.h>
#include "a.h"
int main(void) {
    const struct aot_model *m = AQUERY(AOT_ABI);
    static float x[100] __attribute__((aligned(64)));
    int64_t in_dims[] = {100}, *symbols = calloc(m->symbol_count, 8), dims[1], bytes[1], code, rounds = 0;
    for (int i = 0; i < 100; i++) x[i] = i % 2 ? i : -i;
    float *y = 0;
    do {
        if (m->shapes(in_dims, symbols, dims) || dims[0] != -1) return 1;
        m->output_sizes(symbols, bytes);
        y = realloc(y, bytes[0]);
        void *arena = aligned_alloc(64, (m->arena_size(symbols, 1) + 63) / 64 * 64);
        const void *in[] = {x};
        void *out[] = {y};
        struct aot_request r = {in, out, symbols, arena, 0, 0, 1, 0};
        code = m->infer(&r);
        free(arena);
    } while (code == AOT_CAPACITY && ++rounds < 4);
    m->output_dims(symbols, dims);
    return code || rounds != 1 || dims[0] != 50 || y[0] != 1 || y[49] != 99;
}
"""


def fields(text: str, name: str) -> list[str]:
    body = re.search(rf"struct {name} {{\n(.*?)\n}};", text, re.DOTALL)
    assert body is not None
    lines = [line.split("/*")[0] for line in body[1].splitlines()]
    return [re.findall(r"\(\*(\w+)\)|(\w+);", line)[0] for line in lines]


def test_fields_are_those_of_the_abi() -> None:
    text = header_text(built(chain()))
    for name, structure in (("aot_request", abi.Request), ("aot_model", abi.Table), ("aot_descriptor", abi.Descriptor)):
        assert ["".join(f) for f in fields(text, name)] == [f[0] for f in structure._fields_]
    assert " * input 0: x f32[1000], at a multiple of 64 bytes" in text


def with_scratch() -> Program:
    """Each thread needs 100 bytes, of which it gets 128."""
    program = chain()
    first, *others = program.kernels
    body = (Alloc(dense("t", 25, space=Space.ARENA), first.body),)
    return replace(program, kernels=(Kernel(first.name, first.sizes, first.buffers, body), *others))


@pytest.mark.parametrize(
    "program", [chain(), with_scratch(), running_sum(), positives()], ids=["chain", "scratch", "state", "varying"]
)
def test_counts_and_memory_are_those_of_the_table(program: Program) -> None:
    """Macros of sizes that do not vary agree with the functions of the code, for one thread and for several."""
    model = built(program)
    text = header_text(model, "net")
    macros = dict(re.findall(r"^#define AOT_NET_(\w+)(?:\(threads\))? (.*?)(?: /\*.*)?$", text, re.MULTILINE))
    loaded = load(model)
    library = Library.at(loaded.query, model.manifest, keep=loaded.keep, save=model.write_shared)
    address = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int32)(loaded.query)(abi.ABI_VERSION)
    table = abi.Table.from_address(address)
    counts = [int(macros[name]) for name in ("INPUTS", "OUTPUTS", "SYMBOLS")]
    assert counts == [table.input_count, table.output_count, table.symbol_count]
    assert {"ARENA", "STATE"} & macros.keys() == ({"STATE"} if program.symbols else {"ARENA", "STATE"})
    if not program.symbols:
        assert int(macros["STATE"]) == library.state_size(None)
        for threads in (1, 2, 5):
            room = eval(macros["ARENA"].replace("(int64_t)", ""), {"threads": threads})
            assert room == library.arena_size(None, threads)


def test_sizes_that_the_model_computes(tmp_path: Path) -> None:
    model = built(positives())
    model.write_object(tmp_path / "a.o")
    (tmp_path / "a.h").write_text(header_text(model))
    (tmp_path / "main.c").write_text(GROWING)
    query = f"-DAQUERY=aot_query_{model.tag}"
    command = [*compiler("cc"), "-std=c99", "-Wall", "-Werror", query, "main.c", "a.o", "-o", "main"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tmp_path / "main"], check=False, timeout=600).returncode == 0


def test_two_models_in_one_c_program(tmp_path: Path) -> None:
    queries: list[str] = []
    for name, program in (("a", chain()), ("b", running_sum())):
        model = built(program)
        model.write_object(tmp_path / f"{name}.o")
        (tmp_path / f"{name}.h").write_text(header_text(model))
        queries.append(f"-D{name.upper()}QUERY=aot_query_{model.tag}")
    (tmp_path / "main.c").write_text(PROGRAM)
    command = [*compiler("cc"), "-std=c99", "-Wall", "-Werror", *queries, "main.c", "a.o", "b.o", "-o", "main"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tmp_path / "main"], check=False, timeout=600).returncode == 0


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("net", "net"), "two models are called AOT_NET"),
        (("net", "NET"), "two models are called AOT_NET"),
        (("net", "net_name"), "two models are called AOT_NET"),
        (("net_external", "net"), "two models are called AOT_NET"),
        ((None, None), ""),
        (("net", "other"), ""),
    ],
)
def test_two_models_of_one_name_are_an_error(tmp_path: Path, names: tuple[str | None, str | None], said: str) -> None:
    lines: list[str] = []
    for file, program, name in zip("ab", (chain(), running_sum()), names, strict=True):
        (tmp_path / f"{file}.h").write_text(header_text(built(program), name))
        lines += [f'#include "{file}.h"', f'#include "{file}.h"']
    (tmp_path / "main.c").write_text("\n".join([*lines, "int main(void) { return 0; }", ""]))
    command = [*compiler("cc"), "-std=c99", "-Wall", "-Werror", "-c", "main.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is not bool(said), done.stderr
    assert said in done.stderr


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("digits", "digits"),
        ("mobilenet-v2.1", "mobilenet_v2_1"),
        ("3d", "model_3d"),
        ("é", "model"),
        ("abi", "model_abi"),
    ],
)
def test_names_that_file_names_give(stem: str, name: str) -> None:
    assert name_from(stem) == name
    assert checked_name(name) == name
    assert re.search(rf"#define AOT_{name.upper()} aot_query_", header_text(built(chain()), name))


@pytest.mark.parametrize("name", ["3d", "a-b", "", "abi", "Capacity", "é"])
def test_names_that_are_no_identifiers_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="a C identifier"):
        checked_name(name)
