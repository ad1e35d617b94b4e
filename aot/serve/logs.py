"""Logs of a server: a JSON object a line, or plain text."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import cast


class JsonLines(logging.Formatter):
    """A record as one line of JSON: time, level, logger, message, and the facts that it carries."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_facts(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class Lines(logging.Formatter):
    """A record as a line of text."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        facts = "".join(f" {key}={value}" for key, value in _facts(record).items())
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        text = f"{moment} {record.levelname.lower()} {record.getMessage()}{facts}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def configure(as_json: bool, requests: bool) -> None:
    """Send logs to stderr; `requests`: a line for each inference too."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else Lines())
    for name in ("aot.serve", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.INFO if name == "aot.serve" else logging.WARNING)
    logging.getLogger("aot.serve.http").setLevel(logging.INFO if requests else logging.WARNING)
    logging.getLogger("aot.serve.rpc").setLevel(logging.INFO if requests else logging.WARNING)


def _facts(record: logging.LogRecord) -> dict[str, object]:
    return cast(dict[str, object], getattr(record, "facts", {}))
