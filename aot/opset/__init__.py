"""The opset dialect: importing it fills the registry with the operations of every family."""

from importlib import import_module
from pkgutil import walk_packages

for _family in walk_packages(__path__, f"{__name__}."):
    import_module(_family.name)
