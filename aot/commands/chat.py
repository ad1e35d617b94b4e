"""`aot chat`: a conversation with a language model."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated

from aot.commands.line import arguments as arg
from aot.commands.line.declared import argument, echo, option
from aot.runtime.regular import read_file

HELP = """An empty line or /exit ends, /reset begins anew, /system TEXT begins with another message of the system;
/save FILE and /load FILE keep the messages. A line that ends with \\ goes on in the next one. Ctrl-C ends an answer."""


def chat(
    model: arg.LanguageModel,
    message: Annotated[str | None, argument(help="Message to answer; default: one per line of standard input")] = None,
    system: Annotated[str | None, option(help="System message: instructions before all messages")] = None,
    tokens: Annotated[int, option(min=1, metavar="N", help="Answer with at most N tokens")] = 512,
    tokenizer: arg.TokenizerFile = None,
    template: Annotated[
        Path | None, option(exists=True, dir_okay=False, help="Chat template; default: the model's own")
    ] = None,
    lora: arg.Adapter = None,
    temperature: arg.Temperature = 0,
    top_k: arg.TopK = 0,
    top_p: arg.TopP = 1,
    seed: arg.DrawSeed = 0,
    stop: arg.StopTokens = None,
    threads: arg.Threads = None,
    quiet: arg.Quiet = False,
    debug: arg.Debug = False,
) -> None:
    """Talk to a language model, which remembers all messages.

    Each line is a message, or a command: /reset, /system TEXT, /save FILE, /load FILE, /exit.
    Times are written to standard error.
    """
    from aot.commands import loading
    from aot.commands.line.progress import Watch, terminal
    from aot.runtime.errors import UsageError
    from aot.runtime.generation.generator import Generator
    from aot.runtime.generation.sampling import Sampling
    from aot.text.chat import Chat
    from aot.text.embedding import check_speaks
    from aot.text.stream import text_source, tokenizer_of
    from aot.text.template import ChatTemplate

    check_speaks(model)
    sampling = Sampling(temperature, top_k, top_p, seed)
    with Watch(None if quiet else terminal()) as watch:
        source = text_source(model, tokenizer)
        loaded = loading.ready(model, threads, on_event=watch)
        watch("tokenizer", 0, 1)
        text = tokenizer_of(source, tokenizer, loaded.manifest)
        watch("tokenizer", 1, 1)
        options = (
            text.chat_template()
            if template is None
            else ChatTemplate(read_file(template, "template").decode("utf-8", "replace"), text.marks)
        )
    talk = Chat(Generator(loaded, loading.adapter(lora, loaded.manifest)), text, options, system=system)

    at_terminal = message is None and sys.stdin.isatty()

    def answer(line: str) -> None:
        before = signal.signal(signal.SIGINT, lambda _number, _frame: talk.end()) if at_terminal else None
        try:
            talk.say(line, tokens, sampling, lambda part: echo(part, nl=False), stop or ())
        finally:
            if at_terminal:
                signal.signal(signal.SIGINT, before)
        echo()
        if not quiet:
            echo(str(talk.speed), err=True)

    if message is not None:
        answer(message)
        return
    if at_terminal:
        echo(HELP, err=True)
    commands: dict[str, Callable[[str], object]] = {
        "/reset": lambda _: talk.reset(),
        "/system": talk.reset,
        "/save": lambda path: talk.save(Path(path)),
        "/load": lambda path: talk.load(Path(path)),
    }
    while (line := _message(at_terminal)) and line != "/exit":
        name, _, tail = line.partition(" ")
        try:
            commands.get(name, lambda _, line=line: answer(line))(tail.strip())
        except (UsageError, OSError) as error:
            if not at_terminal:
                raise
            echo(str(error), err=True)


def _message(at_terminal: bool) -> str:
    """Read a message without white space at its ends; "" at the end of the input."""
    lines = [_line(at_terminal, "> ")]
    while lines[-1].endswith("\\"):
        lines[-1] = lines[-1][:-1]
        lines.append(_line(at_terminal, "… "))
    return "\n".join(lines).strip()


def _line(at_terminal: bool, mark: str) -> str:
    """Read a line; a terminal keeps those before, and lets them be changed."""
    if at_terminal and sys.stdout.isatty():
        with suppress(ImportError):
            import_module("readline")
        with suppress(EOFError):
            return input(mark).strip()
        return ""
    if at_terminal:
        echo(mark, nl=False, err=True)
    return sys.stdin.readline().strip()
