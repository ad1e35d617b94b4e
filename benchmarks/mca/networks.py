"""Predicts inferences: `python -m benchmarks.mca.networks [NETWORKS]` sums the cycles that llvm-mca gives for each
block of instructions, as often as an emulator has counted it.

It needs llvm-mca and llvm-objdump, a compiler of C for the processor's machine, and QEMU with plugins, as
`benchmarks.instructions` does. With `--ghz`, on a machine of the kind, the least of many times is printed beside.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import openvino as ov

from aot.codegen.llvm.header import header_text
from aot.compilation.driver import stages
from aot.options import CompileOptions
from aot.runtime.abi import QUERY_PREFIX
from benchmarks.mca.model import TARGETS, find_mca, machine_of, region_cycles
from benchmarks.models import MODELS
from tests.compilers import compiler

HERE = Path(__file__).parent
NETWORKS = ("wide", "patches", "lcnet", "picodet", "shufflenet", "mlp")
COVERED = 0.995  # of the executed instructions are looked at; others count as these
RUNS = 40
_COMMENT = re.compile(r"\s*(<.*>|// .*|# .*)$")
_TARGET = re.compile(
    r"^((?:b|cb|tb|adr|j|call)\S*\s(?:.*,\s)?)0x[0-9a-f]+$"
)  # of a branch, which is relative in assembly
_LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S.*)$")

Blocks = Counter[tuple[int, int]]  # how often a block ran, by its address and its instructions


def program(model: Path, target: str, folder: Path) -> Path:
    """Return a program that runs a network."""
    made = stages(model, CompileOptions(target=target)).built
    made.write_object(folder / "network.o")
    (folder / "network.h").write_text(header_text(made))
    options = ["-O1", "-static", "-I.", f"-DQUERY={QUERY_PREFIX}{made.tag}", str(HERE / "run.c"), "network.o"]
    command = [*compiler(f"{made.machine.name}-linux-gnu-gcc"), *options, "-pthread", "-lm", "-o", "network"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "network"


def counted(text: str) -> Blocks:
    """Return the blocks that the plugin has told."""
    found = Blocks()
    for address, size, count in re.findall(r"^block (\w+) (\d+) (\d+)$", text, re.M):
        found[int(address, 16), int(size)] += int(count)
    return found


def instructions(path: Path) -> dict[int, tuple[str, int]]:
    """Return the instructions of a program by address, with the address of the next one."""
    tool = (find_mca() or "llvm-mca").replace("llvm-mca", "llvm-objdump")
    listing = [tool, "-d", "--no-show-raw-insn", str(path)]
    text = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
    found = [(m[1], _TARGET.sub(r"\g<1>0", _COMMENT.sub("", m[2]))) for m in map(_LINE.match, text.splitlines()) if m]
    lines = [(int(address, 16), line) for address, line in found]
    following = [address for address, _ in lines[1:]] + [0]
    return {address: (line, after) for (address, line), after in zip(lines, following, strict=True)}


def predicted(path: Path, blocks: Blocks, cpu: str) -> float:
    """Return the cycles of blocks, each as if it ran again and again."""
    known, total = instructions(path), sum(size * count for (_, size), count in blocks.items())
    chosen: list[tuple[tuple[str, ...], int]] = []
    seen = 0
    for (address, size), count in sorted(blocks.items(), key=lambda item: -item[0][1] * item[1]):
        if seen >= COVERED * total:
            break
        body: list[str] = []
        while len(body) < size and address in known:
            line, address = known[address]
            body.append(line)
        chosen.append((tuple(body), count))
        seen += size * count
    each = region_cycles([body for body, _ in chosen], cpu, "-skip-unsupported-instructions=any")
    return sum(c * count for c, (_, count) in zip(each, chosen, strict=True)) * total / seen


def network(name: str, folder: Path) -> Path:
    """Return the file of a network: a name of `benchmarks.models`, or a path."""
    if name not in MODELS:
        return Path(name)
    path = folder / f"{name}.xml"
    ov.save_model(MODELS[name](), path, compress_to_fp16=False)
    return path


def main(given: list[str] | None = None) -> None:
    """Print a row of Markdown for each network."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mca.networks", description=__doc__)
    parser.add_argument("networks", nargs="*", default=NETWORKS, help="of benchmarks.models, or files; six by default")
    parser.add_argument("--cpu", choices=[*TARGETS], default="neoverse-v2")
    parser.add_argument("--emulator", help="qemu-aarch64 or qemu-x86_64, with plugins")
    parser.add_argument("--ghz", type=float, help="clock of this machine, to time networks, too")
    options = parser.parse_args(given)
    emulator = options.emulator or f"qemu-{machine_of(options.cpu)}"
    print(
        "| network | million instructions | million cycles |"
        + " predicted, ms | measured, ms | ratio |" * bool(options.ghz)
    )
    print("|--|--|--|" + "--|--|--|" * bool(options.ghz))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        plugin = folder / "blocks.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", HERE / "blocks.c", "-o", plugin], check=True)
        for name in options.networks:
            path = program(network(name, folder), TARGETS[options.cpu], folder)
            command = [emulator, "-cpu", "max", "-plugin", str(plugin), str(path)]
            blocks = counted(subprocess.run(command, capture_output=True, text=True, check=True).stderr)
            total = predicted(path, blocks, options.cpu)
            count = sum(size * n for (_, size), n in blocks.items())
            cells = [Path(name).stem, f"{count / 1e6:.3g}", f"{total / 1e6:.3g}"]
            if options.ghz:
                told = subprocess.run([path, str(RUNS)], capture_output=True, text=True, check=True).stdout
                expected, taken = total / options.ghz / 1e6, int(told) / 1e6
                cells += [f"{expected:.2f}", f"{taken:.2f}", f"{expected / taken:.2f}"]
            print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
