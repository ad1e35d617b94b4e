"""Bodies of HTTP requests: whole, in time, decompressed, within their limits."""

from __future__ import annotations

import asyncio
import json
import zlib
from contextlib import aclosing, suppress
from typing import cast

from starlette.requests import ClientDisconnect, Request

from aot.runtime.errors import UsageError
from aot.serve.faults import SlowError, TooLargeError
from aot.serve.json_texts import json_tree
from aot.serve.settings import Settings

DISCARDED_BYTES, DISCARDING_SECONDS = 8 << 20, 1.0  # at most, of a request that is too large


async def received(request: Request, settings: Settings) -> bytes:
    """Return the body, decompressed; TooLargeError for too many bytes, SlowError if it takes too long."""
    length = request.headers.get("content-length", "0")
    parts, size = list[bytes](), 0
    try:
        if length.isascii() and length.isdecimal() and int(length[:20]) > settings.max_body:
            raise _too_large(settings)
        async with asyncio.timeout(settings.receive_timeout), aclosing(request.stream()) as stream:
            async for part in stream:
                size += len(part)
                if size > settings.max_body:
                    raise _too_large(settings)
                parts.append(part)
    except TooLargeError:
        await _discard(request)
        raise
    except TimeoutError:
        rule = f"must arrive in {settings.receive_timeout:g} s"
        raise SlowError(f"request: {rule}, got {size} bytes") from None
    except ClientDisconnect:
        raise SlowError(f"request: must arrive whole, got {size} bytes") from None
    body = parts[0] if len(parts) == 1 else b"".join(parts)
    coding = request.headers.get("content-encoding", "identity")
    return body if coding == "identity" else _decompressed(body, coding, settings)


async def _discard(request: Request) -> None:
    """Read on a little: a client that is still sending then gets the answer, not a connection that is reset."""
    left = DISCARDED_BYTES
    with suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(DISCARDING_SECONDS), aclosing(request.stream()) as stream:
            async for part in stream:
                left -= len(part)
                if left < 0:
                    return


def _decompressed(body: bytes, coding: str, settings: Settings) -> bytes:
    if coding not in ("gzip", "deflate"):
        raise UsageError(f"request: content-encoding must be gzip or deflate, got {coding[:20]}")
    stream = zlib.decompressobj(zlib.MAX_WBITS | 32 if coding == "gzip" else zlib.MAX_WBITS)
    try:
        data = stream.decompress(body, settings.max_body + 1)
    except zlib.error as error:
        raise UsageError(f"request: must be {coding} data, got {error}") from None
    if len(data) > settings.max_body:
        raise _too_large(settings)
    if not stream.eof:
        raise UsageError(f"request: must be whole {coding} data, got a part")
    return data


def _too_large(settings: Settings) -> TooLargeError:
    return TooLargeError(f"request: must have at most {settings.max_body} bytes, got more")


def json_object(body: bytes) -> dict[str, object]:
    """Return the object that a body holds; its strings are texts. UsageError for another one."""
    try:
        tree = json_tree(body)
        json.dumps(tree, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise UsageError("request: must have texts as strings, got half of a surrogate pair") from None
    except ValueError as error:
        raise UsageError(f"request: must be JSON, got {str(error)[:200]}") from None
    if not isinstance(tree, dict):
        raise UsageError(f"request: must be an object, got {type(tree).__name__}")
    return cast(dict[str, object], tree)
