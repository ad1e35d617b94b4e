"""The opset dialect: a family of operations each module. What no pass names is imported once one asks for it."""

from aot.ir.registry import register_later

register_later(f"{__name__}.families")
