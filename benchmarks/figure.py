"""Draws the figure of the README from the tables of docs/measurements/zen5.md: time and start-up beside the peers.

    python -m benchmarks.figure                    # writes docs/figure.svg
    python -m benchmarks.figure --threads 2 --output two.svg

The SVG has no background, and colours that are readable on light and on dark pages.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parent.parent
TABLES = ROOT / "docs" / "measurements" / "zen5.md"
SHOWN = ("mobilenet_v2", "resnet50", "yolov8n", "bert_base", "lstm_speech", "ppocr4_det", "silero_vad_ov", "mlp")
ENGINES = (("aot", "ours"), ("OpenVINO", "openvino"), ("ONNX Runtime", "onnxruntime"))

# In pixels: the names' column, a network's height, a bar's height, the gap between panels, a panel.
LEFT, ROW, BAR, GAP, WIDTH = 108, 44, 11, 56, 330
# Middle tones: text has a contrast of 4 and more on white and on black, whichever theme the reader's page has.
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #768390 } .head { font-weight: 600; font-size: 13px }
.ours { fill: #2da44e } .openvino { fill: #8c959f } .onnxruntime { fill: #c69026 } .value { font-size: 10px }"""


@dataclass(frozen=True, slots=True)
class Network:
    """Milliseconds of each engine, in the order of ENGINES; None if it was not measured."""

    name: str
    run: tuple[float | None, ...]
    start: tuple[float | None, ...]  # load and first inference


def table(text: str, first: str) -> list[dict[str, str]]:
    """The rows of the table whose heading has the column `first`, by heading."""
    for block in re.findall(r"(?m)(?:^\|.*\n)+", text):
        head, _, *rows = (re.split(r"\s*\|\s*", line.strip().strip("|").strip()) for line in block.splitlines())
        if first in head:
            return [dict(zip(head, row, strict=True)) for row in rows]
    raise ValueError(f"{TABLES.name}: no table has the column {first!r}")


def milliseconds(cell: str) -> float | None:
    """The least time of `0.0282 (0.0292)`, the sum of `1.5 + 0.3`; None for a dash."""
    found = [float(n) for n in re.findall(r"[\d.]+", cell.split("(", 1)[0])]
    return sum(found) if found else None


def networks(text: str, threads: int) -> list[Network]:
    """The shown networks at a number of threads, in the order of SHOWN."""
    run = {r["model"]: r for r in table(text, "ours ms") if int(r["T"]) == threads}
    start = {r["model"]: r for r in table(text, "ours load + first ms") if int(r["T"]) == threads}
    times, starts = ("ours ms", "OpenVINO ms", "ONNX Runtime ms"), ("ours load + first ms", "OpenVINO", "ONNX Runtime")

    def read(row: dict[str, str], columns: tuple[str, ...]) -> tuple[float | None, ...]:
        return tuple(milliseconds(row[c]) for c in columns)

    return [Network(n, read(run[n], times), read(start[n], starts)) for n in SHOWN]


def panel(x: int, title: str, rows: list[tuple[float | None, ...]]) -> list[str]:
    """Bars of one quantity; each network's longest bar fills the panel, and numbers say the milliseconds."""
    lines = [f'<text class="head" x="{x}" y="18">{escape(title)}</text>']
    for at, times in enumerate(rows):
        longest = max(t for t in times if t is not None)
        for k, (time, (_, style)) in enumerate(zip(times, ENGINES, strict=True)):
            if time is None:
                continue
            y, long = 34 + at * ROW + k * (BAR + 1), max(1.5, time / longest * (WIDTH - 60))
            lines.append(f'<rect class="{style}" x="{x}" y="{y}" width="{long:.1f}" height="{BAR}" rx="2"/>')
            lines.append(f'<text class="value" x="{x + long + 5:.1f}" y="{y + BAR - 2}">{time:.3g} ms</text>')
    return lines


def draw(found: list[Network], threads: int) -> str:
    """The figure as SVG: the same bytes for the same tables."""
    height = 34 + ROW * len(found) + 30
    width = LEFT + 2 * WIDTH + GAP
    title = "Time of an inference and of loading with the first inference: aot, OpenVINO, ONNX Runtime"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{title}">',
        f"<style>{STYLE}\n</style>",
    ]
    for at, one in enumerate(found):
        lines.append(f'<text x="{LEFT - 10}" y="{34 + at * ROW + 22}" text-anchor="end">{escape(one.name)}</text>')
    count = "1 thread" if threads == 1 else f"{threads} threads"
    lines += panel(LEFT, f"Inference, {count}", [n.run for n in found])
    lines += panel(LEFT + WIDTH + GAP, "Load and first inference", [n.start for n in found])
    for k, (name, style) in enumerate(ENGINES):
        x = LEFT + 120 * k
        lines.append(f'<rect class="{style}" x="{x}" y="{height - 18}" width="{BAR}" height="{BAR}" rx="2"/>')
        lines.append(f'<text x="{x + 17}" y="{height - 8}">{name}</text>')
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "figure.svg")
    args = parser.parse_args()
    args.output.write_text(draw(networks(TABLES.read_text(encoding="utf-8"), args.threads), args.threads))


if __name__ == "__main__":
    main()
