"""Options that a library tells: the property COMPILE_OPTIONS of a model that is loaded."""

from __future__ import annotations

from aot.extensions.folder import folders_of
from aot.options import CompileOptions
from aot.precision import precision_of

ONLY_IF_SET = (
    *("mean", "scale", "reverse_channels", "shapes", "dims", "specialise", "feeds", "cut", "signature", "seed"),
    *("cores", "disable_layout_change", "activations", "max_context", "last_logits", "row_lengths"),
)


def recorded_options(options: CompileOptions, tuned: int) -> dict[str, object]:
    """Return the options by name; `tuned`: the number of schedules that were measured.

    Of values that became constants, and of extensions, only names: values may be large, and folders lie elsewhere.
    """
    found: dict[str, object] = {
        "target": options.target,
        "layouts": [list(pair) for pair in options.layouts],
        "small_weights": options.small_weights,
        "plain_products": options.plain_products,
        "tuned": tuned,
    }
    plain = CompileOptions()
    found |= {name: value for name in ONLY_IF_SET if (value := getattr(options, name)) != getattr(plain, name)}
    if options.values:
        found["values"] = [name for name, _ in options.values]
    if options.extensions is not None:
        found["extensions"] = [folder.name for folder in folders_of(options.extensions)]
    if not precision_of(options.precision).is_plain:
        found["precision"] = options.precision
    if options.fast_math:
        found["fast_math"] = True
    return found
