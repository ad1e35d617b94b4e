"""Options that compilations refuse, and the text of the errors."""

from typing import Any

import pytest

from aot.compilation.driver import compile_model
from aot.options import CompileOptions
from aot.runtime.errors import UsageError


@pytest.mark.parametrize("given", [{"shapes": {"x": (1, 2)}}, {"values": [("k", 1)]}, {"dims": ("batch",)}])
def test_options_are_tuples(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"CompileOptions: {next(iter(given))} must be a tuple of tuples"):
        CompileOptions(**given)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((3,), "model must be .* got int"),
        ((None,), "got NoneType"),
        (("m.xml", "CPU"), "options must be .* got str"),
    ],
)
def test_arguments_of_other_types(arguments: tuple[Any, ...], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        compile_model(*arguments)
