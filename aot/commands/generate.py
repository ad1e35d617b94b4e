"""`aot generate`: a text continued by a language model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aot.commands.line import arguments as arg
from aot.commands.line.declared import argument, echo, option
from aot.commands.output import JSON_VERSION

if TYPE_CHECKING:
    from aot.ir.types import Array
    from aot.runtime.generation.sampling import Sampling
    from aot.runtime.generation.token_loop import TokenLoop
    from aot.runtime.model import CompiledModel


def generate(
    model: arg.LanguageModel,
    prompt: Annotated[str, argument(help="Text to continue or to read; with --ids, numbers of tokens: 5,1,40")],
    tokens: Annotated[int, option(min=0, metavar="N", help="Add at most N tokens")] = 64,
    tokenizer: arg.TokenizerFile = None,
    ids: Annotated[bool, option("--ids", help="Read and write numbers of tokens instead of text")] = False,
    lora: arg.Adapter = None,
    temperature: arg.Temperature = 0,
    top_k: arg.TopK = 0,
    top_p: arg.TopP = 1,
    seed: arg.DrawSeed = 0,
    draft: Annotated[
        Path | None, option(exists=True, help="Small language model that proposes tokens, which the model checks")
    ] = None,
    look_up: Annotated[
        bool, option("--look-up", help="Propose tokens that followed the last ones before, as when code is edited")
    ] = False,
    beams: Annotated[
        int, option(min=1, metavar="N", help="Continue N texts about the one that is read, and write the best")
    ] = 1,
    stream: Annotated[bool, option("--stream", help="With --json: a line for each part of the text, too")] = False,
    as_json: arg.Json = False,
    ahead: Annotated[
        int | None, option(min=1, metavar="N", help="Tokens that are proposed at once; default: 3, with --look-up 7")
    ] = None,
    start: Annotated[
        str | None,
        option(metavar="IDS", help="Tokens that begin an answer about a text: 2,256057; default: the model's"),
    ] = None,
    stop: arg.StopTokens = None,
    threads: arg.Threads = None,
    quiet: arg.Quiet = False,
    debug: arg.Debug = False,
) -> None:
    """Continue a text, or write one about it, token by token. Times are written to standard error."""
    from aot.commands import loading
    from aot.commands.line.progress import Watch, terminal
    from aot.runtime.generation.drafting import AHEAD
    from aot.runtime.generation.sampling import Sampling
    from aot.text.embedding import check_speaks
    from aot.text.encoder_decoder_loop import is_text_to_text, start_of
    from aot.text.look_up import AHEAD_IN_TEXT
    from aot.text.speed import Speed
    from aot.text.stream import Stream, ids_of, text_source, tokenizer_of

    check_speaks(model)
    sampling = Sampling(temperature, top_k, top_p, seed)
    with Watch(None if quiet else terminal()) as watch:
        source = None if ids else text_source(model, tokenizer)
        large = loading.ready(model, threads, strict=True, on_event=watch)
        watch("tokenizer", 0, 1)
        text = None if source is None else tokenizer_of(source, tokenizer, large.manifest)
        watch("tokenizer", 1, 1)
        prompt_ids = ids_of(prompt) if text is None else text.begin(prompt)
        ends = (*(stop or ()), *(text.stop if text is not None else ()))
        reads = is_text_to_text(large.manifest)
        _check(model.name, reads, draft is not None, look_up, beams)
        small = None if draft is None else loading.ready(draft, threads, strict=True, on_event=watch)
    if reads:
        generator = _about(large, prompt_ids, beams)
        prompt_ids = start_of(large.manifest) if start is None else ids_of(start, "--start")
    else:
        adapter = loading.adapter(lora, large.manifest)
        usual = AHEAD_IN_TEXT if look_up else AHEAD
        generator = _behind(large, small, adapter, sampling, (ahead or usual) if look_up or small else 0)
    parts: list[str] = []

    def write(part: str) -> None:
        parts.append(part)
        if not as_json:
            echo(part, nl=False)
        elif stream and part:
            echo(json.dumps({"part": part}))

    written = Stream(text, write, begins=reads)
    speed = Speed(written.add)
    generated = generator.generate(prompt_ids, tokens, sampling, ends, speed.add)
    write(written.rest())
    if as_json:
        text_entry = {} if text is None else {"text": "".join(parts)}
        facts = {"version": JSON_VERSION, **text_entry, "ids": generated, **speed.facts}
        echo(json.dumps(facts, indent=None if stream else 1))
    else:
        echo()
        if not quiet:
            echo(str(speed), err=True)


def _check(name: str, reads: bool, has_draft: bool, look_up: bool, beams: int) -> None:
    """Raise UsageError for options that do not fit each other, or the model, which reads a text or continues it."""
    from aot.runtime.errors import UsageError

    if (has_draft or look_up) and reads:
        raise UsageError(f"--draft: the model must continue a text, got {name}, which reads one")
    if beams > 1 and not reads:
        raise UsageError(f"--beams: is for models that read a text, got {name}, which continues one")
    if has_draft and look_up:
        raise UsageError("--look-up: cannot be given together with --draft, got both")


def _about(model: CompiledModel, source: list[int], beams: int) -> TokenLoop:
    """Return the loop for a text about a source."""
    from aot.text.beam_search import BeamSearch
    from aot.text.encoder_decoder_loop import EncoderDecoderLoop, source_inputs

    inputs = source_inputs(source)
    return EncoderDecoderLoop(model, inputs) if beams == 1 else BeamSearch(model, inputs, beams)


def _behind(
    model: CompiledModel,
    draft: CompiledModel | None,
    adapter: dict[str, Array] | None,
    sampling: Sampling,
    ahead: int,
) -> TokenLoop:
    """Return the loop that continues a text; `ahead`: tokens that are proposed at once, 0 for none."""
    from aot.runtime.generation.compiled_loop import loop_of
    from aot.runtime.generation.drafting import Drafting
    from aot.runtime.generation.generator import Generator
    from aot.text.look_up import LookUp

    if draft is not None:
        return Drafting(Generator(model, adapter), Generator(draft), ahead)
    if ahead:
        return LookUp(Generator(model, adapter), ahead)
    return loop_of(model, sampling) if adapter is None else Generator(model, adapter)
