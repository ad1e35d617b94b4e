"""Connections of HTTP: uvicorn's, with a limit of the header, and answers for clients that have ended their sending.

client: request, end of sending (FIN)   ->   answer, end   <-   a client that is gone looks the same: it is probed
"""

from __future__ import annotations

import json
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from aot.serve.bodies import DISCARDING_SECONDS

HEADER_BYTES = 1 << 16  # limit of a request's first line and header, and of each stretch without a byte of its body
_PROBE_SECONDS = 1.0  # seconds from the end of a client's sending to the first probe, and from probe to probe
_PROBES = 2  # two probes: the first provokes a TCP reset if the client is gone, the second one's write fails
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"  # clients skip it, also if they do not wait for it (RFC 9110, 15.2)


class Connection(HttpToolsProtocol):
    """A connection of a client."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._header = 0  # bytes of the header, as far as it is parsed
        self._unread = 0  # bytes received since the parser last reported a part of the request
        self._is_refused = False

    def data_received(self, data: bytes) -> None:
        """Parse bytes; after a header that is too long they are dropped."""
        if self._is_refused:
            return
        self._unread += len(data)
        super().data_received(data)
        if self._unread > HEADER_BYTES and not self._is_refused and not self.transport.is_closing():
            self._refuse()

    def eof_received(self) -> bool | None:  # pyrefly: ignore[bad-override]  uvicorn gives None
        """Keep the connection open for an answer that is due; TLS cannot."""
        cycle = self._due()
        if self._is_refused or cycle is None or cycle.more_body or self.scheme == "https":
            return None
        cycle.keep_alive = False
        if not cycle.response_started and cycle.scope["http_version"] == "1.1":
            self.loop.call_later(_PROBE_SECONDS, self._probe, cycle, _PROBES)
        return True

    def _due(self) -> RequestResponseCycle | None:
        """Return the last request and its answer, unless that was sent."""
        return self.cycle if self.cycle and not self.cycle.response_complete else None

    def _probe(self, cycle: RequestResponseCycle, times: int) -> None:
        """Write `times` probes to a client that has ended its sending: the write fails if the client is gone."""
        if times and not cycle.response_started and not self.transport.is_closing():
            self.transport.write(_CONTINUE)
            self.loop.call_later(_PROBE_SECONDS, self._probe, cycle, times - 1)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._header = 0

    def on_url(self, url: bytes) -> None:
        self._count(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(name, value)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unread = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unread = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that cannot be parsed."""
        if self._header > HEADER_BYTES:
            self._refuse()
        else:
            super().send_400_response(msg)

    def _count(self, *parts: bytes) -> None:
        self._header += sum(map(len, parts))
        if self._header > HEADER_BYTES:
            raise ValueError("header")  # the parser ends with an error of its own

    def _refuse(self) -> None:
        """Answer 431, read on a little so that a client that is still sending gets it, and close."""
        self._is_refused = True
        error = f"request: must have at most {HEADER_BYTES} bytes of header, got more"
        body = json.dumps({"error": error}).encode()
        cycle = self._due()
        if cycle is None or not cycle.response_started:
            lines = ("431 Request Header Fields Too Large", "content-type: application/json", "connection: close")
            head = "\r\n".join(("HTTP/1.1 " + lines[0], *lines[1:], f"content-length: {len(body)}", "", ""))
            self.transport.write(head.encode() + body)
        if cycle is not None:
            cycle.disconnected = True
            cycle.message_event.set()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(DISCARDING_SECONDS, self.transport.close)
