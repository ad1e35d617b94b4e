"""`aot chat`: a conversation with a language model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from aot.commands.line import arguments as arg
from aot.commands.line.declared import argument, echo, option
from aot.runtime.regular import read_file

HELP = "An empty line or /exit ends, /reset begins anew."


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

    Each line is a message. Times are written to standard error.
    """
    from aot.commands import loading
    from aot.commands.line.progress import Watch, terminal
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
        chosen = (
            text.chat_template()
            if template is None
            else ChatTemplate(read_file(template, "template").decode("utf-8", "replace"), text.marks)
        )
    talk = Chat(Generator(loaded, loading.adapter(lora, loaded.manifest)), text, chosen, system=system)

    def answer(line: str) -> None:
        talk.say(line, tokens, sampling, lambda part: echo(part, nl=False), stop or ())
        echo()
        if not quiet:
            echo(str(talk.speed), err=True)

    if message is not None:
        answer(message)
        return
    at_terminal = sys.stdin.isatty()
    if at_terminal:
        echo(HELP, err=True)
    while line := _line(at_terminal):
        if line == "/reset":
            talk.reset()
        elif line == "/exit":
            break
        else:
            answer(line)


def _line(at_terminal: bool) -> str:
    """Read a line without white space at its ends; "" at the end of the input."""
    if at_terminal:
        echo("> ", nl=False, err=True)
    return sys.stdin.readline().strip()
