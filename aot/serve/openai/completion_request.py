"""Requests of OpenAI's API, checked: the fields that are known, their ranges, and those that are refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from aot.codegen.dataclass import dataclass
from aot.runtime.generation.sampling import Sampling
from aot.serve.openai.fields import FieldError, check_others, flag_of, list_of, object_of, real_of, whole_of
from aot.serve.openai.messages import called_of, messages_of, tools_of
from aot.serve.openai.token_sampler import SamplingRules
from aot.text.grammars import GRAMMAR, REGEX, SCHEMA

MAX_STOPS, MAX_STOP = 4, 256  # texts that end an answer, and their characters
MAX_ANSWERS, MAX_BIASES = 16, 1024  # to one request, and tokens of `logit_bias`
MAX_TOP = {True: 20, False: 5}  # tokens whose probabilities are sent: in a chat, in a completion, as in OpenAI's API
DEFAULT_TOKENS = 16  # tokens of a completion without max_tokens, as in OpenAI's API
# Fields that all endpoints follow; completions and chats have more, and `prompt` or `messages`.
COMMON = (
    *("model", "temperature", "top_p", "top_k", "min_p", "seed", "stop", "stream", "stream_options", "logit_bias"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty", "grammar", "regex", "start"),
)
FOLLOWED = (*COMMON, "max_tokens", "max_completion_tokens", "n", "logprobs", "response_format")
OF_CHATS = ("messages", "tools", "tool_choice", "top_logprobs")  # followed, too
# Fields that no answer depends on: whose request it is, how it is stored, cached and billed, and when its turn comes.
WITHOUT_EFFECT = (
    *("user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"),
    *("parallel_tool_calls", "prediction", "request_id", "priority"),
)
# Fields of OpenAI and of other servers that may have one of these values, which ask for what is done anyway. All other
# fields must be null or left out: otherwise they would be ignored silently.
NEUTRAL: dict[str, tuple[object, ...]] = {
    "best_of": (1,),
    "echo": (False,),
    "top_logprobs": (0,),
    "suffix": ("",),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "modalities": (["text"],),
    "min_tokens": (0,),
    "length_penalty": (1,),
    "ignore_eos": (False,),
    "use_beam_search": (False,),
    "include_stop_str_in_output": (False,),
    "stop_token_ids": ([],),
    "skip_special_tokens": (True,),
    "spaces_between_special_tokens": (True,),
    "add_generation_prompt": (True,),
    "continue_final_message": (False,),
}


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A request. `prompts`: texts or tokens; each gets `answers`. `messages`: of a chat, instead of them.

    `tokens`: of an answer at most, None: as many as fit.

    `tools`: functions that may be called; `called`: functions of which the answer must call one. `grammar`: of answers.
    `start`: tokens that begin an answer about a text; none: the model's.
    `text_field`, `tokens_field`: names of the fields that hold the text and the number of tokens, for errors.
    """

    model: str
    prompts: Sequence[str | list[int]]
    messages: list[dict[str, object]] | None
    tokens: int | None
    rules: SamplingRules
    stop: tuple[str, ...]
    stream: bool
    usage: bool  # a stream ends with the numbers of tokens
    answers: int = 1
    tools: tuple[dict[str, object], ...] = ()
    called: tuple[dict[str, object], ...] = ()
    grammar: tuple[str, str] | None = None  # kind and text, see `aot.text.grammars`
    text_field: str = "messages"
    tokens_field: str = "max_tokens"
    start: tuple[int, ...] = ()
    adapter: str = ""  # the adapter's name, which follows the model's; "" for none


def completion_request_of(tree: Mapping[str, object], *, chat: bool) -> CompletionRequest:
    """Return a request; FieldError for a field that is missing, of another type or range, or not supported."""
    known = (*FOLLOWED, *WITHOUT_EFFECT, *(OF_CHATS if chat else ("prompt",)))
    check_others("", tree, known, NEUTRAL)
    tools = tools_of(tree) if chat else ()
    called = called_of(tree, tools) if chat else ()
    form, answers = tree.get("response_format"), whole_of(tree, "n", 1, 1, MAX_ANSWERS + 1)
    tokens = "max_completion_tokens" if tree.get("max_completion_tokens") is not None else "max_tokens"
    return CompletionRequest(
        model_of(tree),
        () if chat else _prompts(tree.get("prompt"), answers),
        messages_of(tree.get("messages")) if chat else None,
        tokens_of(tree, tokens, None if chat else DEFAULT_TOKENS),
        sampling_rules_of(tree, _top(tree, chat)),
        stops_of(tree.get("stop")),
        flag_of(tree, "stream"),
        usage_of(tree.get("stream_options")),
        answers,
        tools,
        called,
        grammar_of(tree, None if form is None else schema_of(form, "response_format"), called),
        "messages" if chat else "prompt",
        tokens,
        start_of(tree),
    )


def model_of(tree: Mapping[str, object]) -> str:
    """Return the name of the model."""
    model = tree.get("model")
    if not isinstance(model, str):
        raise FieldError("model", "the name of a model", model)
    return model


def sampling_rules_of(tree: Mapping[str, object], top: int | None) -> SamplingRules:
    """Return the rules of choice; `top`: the number of probabilities in the answer."""
    sampling = Sampling(
        real_of(tree, "temperature", 1.0, 0, 2),
        whole_of(tree, "top_k", 0, 0, 1 << 31),
        real_of(tree, "top_p", 1.0, 1e-6, 1),
        whole_of(tree, "seed", 0, 0, 1 << 63),
    )
    return SamplingRules(
        sampling,
        _bias(tree.get("logit_bias")),
        real_of(tree, "presence_penalty", 0.0, -2, 2),
        real_of(tree, "frequency_penalty", 0.0, -2, 2),
        real_of(tree, "repetition_penalty", 1.0, 0.01, 100),
        real_of(tree, "min_p", 0.0, 0, 1),
        top,
    )


def _top(tree: Mapping[str, object], chat: bool) -> int | None:
    """Return the number of probabilities that are sent beside each token's own; None: not even its own."""
    if chat:
        count = whole_of(tree, "top_logprobs", 0, 0, MAX_TOP[chat] + 1)
        if count and not flag_of(tree, "logprobs"):
            raise FieldError("top_logprobs", "left out without logprobs", count)
        return count if flag_of(tree, "logprobs") else None
    logprobs = tree.get("logprobs")
    return None if logprobs is None or logprobs is False else whole_of(tree, "logprobs", 0, 0, MAX_TOP[chat] + 1)


def _bias(value: object) -> dict[int, float]:
    biases: Mapping[str, object] = {} if value is None else object_of(value, "logit_bias")
    rule = f"numbers from -100 to 100 for at most {MAX_BIASES} tokens"
    if len(biases) > MAX_BIASES or not all(key.isascii() and key.isdecimal() and len(key) < 10 for key in biases):
        raise FieldError("logit_bias", rule, json.dumps(value))
    return {int(key): real_of(biases, key, 0.0, -100, 100) for key in biases}


def grammar_of(
    tree: Mapping[str, object], schema: dict[str, object] | None, called: tuple[dict[str, object], ...]
) -> tuple[str, str] | None:
    """Return the grammar of answers: of a schema, `grammar`, `regex` and a call that must be made one at most."""
    grammars: list[tuple[str, str]] = [] if schema is None else [(SCHEMA, json.dumps(schema))]
    for field, kind in (("grammar", GRAMMAR), ("regex", REGEX)):
        text = tree.get(field)
        if text is not None and (not isinstance(text, str) or not text):
            raise FieldError(field, "a text", json.dumps(text))
        grammars += [] if text is None else [(kind, text)]
    if len(grammars) > 1:
        field = "regex" if tree.get("regex") is not None else "grammar"
        raise FieldError(field, "left out beside another form of the answer", "both")
    if called and grammars:
        raise FieldError("tool_choice", "none or auto beside a format of the answer", json.dumps(tree["tool_choice"]))
    return grammars[0] if grammars else None


def schema_of(value: object, field: str, *, flat: bool = False) -> dict[str, object] | None:
    """Return the JSON schema of the format in `field`, None for text; `flat`: it lies in the format itself."""
    form = object_of(value, field)
    kind = form.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    if kind != "json_schema":
        raise FieldError(field, "of type text, json_object or json_schema", kind)
    if not flat:
        field = f"{field}.json_schema"
        form = object_of(form.get("json_schema"), field)
    return object_of(form.get("schema", {}), f"{field}.schema")


def usage_of(value: object) -> bool:
    """Return True if `stream_options` ask for the numbers of tokens."""
    if value is None:
        return False
    options = object_of(value, "stream_options")
    check_others("stream_options.", options, ("include_usage", "include_obfuscation"), {})
    return flag_of(options, "include_usage")


def tokens_of(tree: Mapping[str, object], field: str, default: int | None) -> int | None:
    """Return the most tokens of an answer."""
    return default if tree.get(field) is None else whole_of(tree, field, 0, 1, 1 << 31)


def _prompts(value: object, answers: int) -> list[str | list[int]]:
    """Return the prompts; each gets `answers` answers."""
    prompts = list_of(value)
    several = prompts if prompts and all(isinstance(one, (str, list)) for one in prompts) else [value]
    rule = f"a text, a list of tokens, or a list of them for {MAX_ANSWERS} answers at most"
    if len(several) * answers > MAX_ANSWERS:
        raise FieldError("prompt", rule, f"{len(several)} with {answers} each")
    return [one if isinstance(one, str) else _tokens(list_of(one), "prompt", rule, value) for one in several]


def start_of(tree: Mapping[str, object]) -> tuple[int, ...]:
    """Return the tokens that begin an answer."""
    value = tree.get("start")
    return () if value is None else tuple(_tokens(list_of(value), "start", "a list of tokens", value))


def _tokens(tokens: list[object], field: str, rule: str, value: object) -> list[int]:
    if not tokens or not all(isinstance(n, int) and not isinstance(n, bool) for n in tokens):
        raise FieldError(field, rule, json.dumps(value))
    return cast("list[int]", tokens)


def stops_of(value: object) -> tuple[str, ...]:
    """Return the texts that end an answer."""
    if value is None:
        return ()
    stops = [value] if isinstance(value, str) else list_of(value)
    texts = [text for text in stops if isinstance(text, str) and 0 < len(text) <= MAX_STOP]
    if len(texts) != len(stops) or not 1 <= len(texts) <= MAX_STOPS:
        raise FieldError("stop", f"1 to {MAX_STOPS} texts of 1 to {MAX_STOP} characters", json.dumps(value))
    return tuple(texts)
