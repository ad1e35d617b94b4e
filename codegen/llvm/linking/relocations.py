"""Relocations of ELF by machine, for libraries that no linker makes: where code and data name an address."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from aot.codegen.dataclass import dataclass
from aot.runtime.errors import InternalError


@dataclass(frozen=True, slots=True)
class Relocations:
    """Relocations of a machine. `jump`: code that jumps to the address in a word of memory.

    `apply(data, at, kind, here, target)` completes code or data with the address `target`: `at` of `data`, at address
    `here`. `aim(data, at, here, slot)` completes a jump, whose word is at address `slot`. InternalError for unknown
    types, and for an address that code does not reach.
    """

    absolute: int  # type of those that are a whole address
    jump: bytes
    apply: Callable[[bytearray, int, int, int, int], None]
    aim: Callable[[bytearray, int, int, int], None]


def _unknown(kind: int) -> InternalError:
    return InternalError(f"link: a relocation must be of a known type, got {kind}")


def _x86_64(data: bytearray, at: int, kind: int, here: int, target: int) -> None:
    if kind not in (2, 4):  # relative to the place, a call too
        raise _unknown(kind)
    struct.pack_into("<i", data, at, target - here)


def _x86_64_jump(data: bytearray, at: int, here: int, slot: int) -> None:
    struct.pack_into("<i", data, at + 2, slot - (here + 6))


_CALLS, _PAGES = (282, 283), (275, 311)  # jumps and calls; pages of 4096 bytes, of an address or of its table
_RELATIVE_32, _LOW_OF_TABLE, _LOW_64 = 261, 312, 286
_LOW = {277: 0, 278: 0, 284: 1, 285: 2, _LOW_64: 3, 299: 4}  # low bits of an address: by how many they are shifted
_MOST_JUMP = 1 << 27  # bytes that a call reaches, forwards and backwards


def _aarch64(data: bytearray, at: int, kind: int, here: int, target: int) -> None:
    (word,) = struct.unpack_from("<I", data, at)
    if kind in _CALLS:
        if not -_MOST_JUMP <= target - here < _MOST_JUMP or target % 4:
            raise InternalError(f"link: a call reaches {_MOST_JUMP} bytes, in words, got {target - here}")
        word |= (target - here) >> 2 & 0x3FFFFFF
    elif kind in _PAGES:
        pages = (target >> 12) - (here >> 12)
        word |= (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
    elif kind in _LOW:
        if target % (1 << _LOW[kind]):
            raise InternalError(f"link: an access is at a multiple of its {1 << _LOW[kind]} bytes, got {target:#x}")
        word |= (target & 0xFFF) >> _LOW[kind] << 10
    elif kind == _LOW_OF_TABLE:  # a load of an address from a table: the address is known, so it is added instead
        word = 0x91000000 | word & 0x3FF | (target & 0xFFF) << 10
    elif kind == _RELATIVE_32:
        word = target - here & 0xFFFFFFFF
    else:
        raise _unknown(kind)
    struct.pack_into("<I", data, at, word)


def _aarch64_jump(data: bytearray, at: int, here: int, slot: int) -> None:
    _aarch64(data, at, _PAGES[0], here, slot)
    _aarch64(data, at + 4, _LOW_64, here + 4, slot)


RELOCATIONS: Mapping[str, Relocations] = {
    "x86_64": Relocations(1, b"\xff\x25" + bytes(4), _x86_64, _x86_64_jump),  # jmp [rip + offset]
    # adrp x16, page; ldr x16, [x16]; br x16
    "aarch64": Relocations(257, struct.pack("<III", 0x90000010, 0xF9400210, 0xD61F0200), _aarch64, _aarch64_jump),
}
