"""Importing it fills the registry with the operations of every family."""

from importlib import import_module
from pkgutil import walk_packages

import aot.opset

for _family in walk_packages(aot.opset.__path__, "aot.opset."):
    import_module(_family.name)
