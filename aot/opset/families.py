"""Fills the registry with the operations of every family when it is imported.

It is a module because a second thread that asks for an operation waits until the first one has imported it.
"""

from importlib import import_module
from pkgutil import walk_packages

import aot.opset

for _family in walk_packages(aot.opset.__path__, "aot.opset."):
    import_module(_family.name)
