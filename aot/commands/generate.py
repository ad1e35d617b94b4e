"""`aot generate`: a text continued by a language model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aot.commands.line import arguments as arg
from aot.commands.line.declared import argument, echo, option


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
    ahead: Annotated[int, option(min=1, metavar="N", help="Tokens that are proposed at once")] = 3,
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
    from aot.runtime.errors import UsageError
    from aot.runtime.generation.compiled_loop import loop_of
    from aot.runtime.generation.drafting import Drafting
    from aot.runtime.generation.generator import Generator
    from aot.runtime.generation.sampling import Sampling
    from aot.runtime.generation.token_loop import TokenLoop
    from aot.text.embedding import check_speaks
    from aot.text.encoder_decoder_loop import EncoderDecoderLoop, is_text_to_text, source_inputs, start_of
    from aot.text.look_up import LookUp
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
        reads, small = is_text_to_text(large.manifest), None
        if (draft is not None or look_up) and reads:
            raise UsageError(f"--draft: is for models that continue a text, got {model.name}, which reads one")
        if draft is not None and look_up:
            raise UsageError("--look-up: proposes tokens without a model, got --draft, too")
        if draft is not None:
            small = Generator(loading.ready(draft, threads, strict=True, on_event=watch))
    stream = Stream(text, lambda part: echo(part, nl=False), begins=reads)
    if reads:
        generator: TokenLoop = EncoderDecoderLoop(large, source_inputs(prompt_ids))
        prompt_ids = start_of(large.manifest) if start is None else ids_of(start, "--start")
    else:
        adapter = loading.adapter(lora, large.manifest)
        if look_up:
            generator = LookUp(Generator(large, adapter), ahead)
        elif small is not None:
            generator = Drafting(Generator(large, adapter), small, ahead)
        else:
            generator = loop_of(large, sampling) if adapter is None else Generator(large, adapter)
    speed = Speed(stream.add)
    generator.generate(prompt_ids, tokens, sampling, ends, speed.add)
    echo(stream.rest())
    if not quiet:
        echo(str(speed), err=True)
