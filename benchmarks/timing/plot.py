"""Draws the ratios, with their spread, as horizontal bars."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.timing.report import Row, number


def draw(rows: list[Row], path: Path) -> None:
    """A bar for each model and number of threads; the line at 1 is the fastest peer. SVG or PNG by the suffix."""
    shown = [r for r in rows if "ratio" in r]
    models = list(dict.fromkeys(str(r["model"]) for r in shown))[::-1]
    threads = sorted({int(number(r, "threads")) for r in shown})
    height = 0.8 / max(1, len(threads))
    figure, axes = plt.subplots(figsize=(8, 0.8 + 0.5 * len(models)), layout="constrained")
    for place, count in enumerate(threads):
        chosen = [r for r in shown if r["threads"] == count]
        middles = [models.index(str(r["model"])) - place * height for r in chosen]
        values = [number(r, "ratio") for r in chosen]
        low = [max(0.0, v - number(r, "ratio_p10")) for v, r in zip(values, chosen, strict=True)]
        high = [max(0.0, number(r, "ratio_p90") - v) for v, r in zip(values, chosen, strict=True)]
        axes.barh(middles, values, height, xerr=[low, high], capsize=2, label=f"{count} thread{'s' * (count > 1)}")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_yticks([i - height * (len(threads) - 1) / 2 for i in range(len(models))], models)
    axes.set_xlabel("time of the fastest peer / ours (median of rounds; whiskers: 10th to 90th percentile)")
    axes.legend()
    plt.rcParams["svg.hashsalt"] = "aot"  # equal results give equal files
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)
