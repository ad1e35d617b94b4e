"""A served language model: tokenizer, template, and as many sequences at once as the server allows."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from aot.frontends.adapters import digest_of, read_adapter
from aot.runtime.arrays.tensors import Array
from aot.runtime.errors import UsageError
from aot.runtime.generation.generator import Generator
from aot.runtime.generation.interface import IDS, LORA_A, LORA_B, NAMES, has_row_lengths, logits_of
from aot.runtime.generation.token_loop import Continuation
from aot.runtime.inference.executor import Executor
from aot.runtime.model import CompiledModel
from aot.serve.openai.admission_queue import AdmissionQueue
from aot.serve.openai.answer import Answer, StopTextFilter
from aot.serve.openai.completion_request import CompletionRequest
from aot.serve.openai.continuous_batch import ContinuousBatch
from aot.serve.openai.fields import FieldError
from aot.serve.openai.messages import function_of
from aot.serve.openai.token_sampler import TokenSampler
from aot.serve.served_model import ServedModel
from aot.serve.settings import Settings
from aot.text.encoder_decoder_loop import EncoderDecoderLoop, is_text_to_text, source_inputs, start_of
from aot.text.grammars import Constraint, Grammars, grammar_of, grammar_of_calls
from aot.text.prefix_cache import PrefixCache
from aot.text.stream import text_source
from aot.text.template import ChatTemplate
from aot.text.tokenizers.tokenizer import Tokenizer, read_tokenizer
from aot.text.tool_calls import form_of

_LOG = logging.getLogger(__name__)


class ServedLanguageModel:
    """Answers of one version of a model; its sequences keep their memory from one answer to the next."""

    def __init__(self, served: ServedModel, settings: Settings, executor: Executor) -> None:
        """UsageError for a model that is no language model, or has no tokenizer."""
        self.served, self._settings, self._executor = served, settings.of(served.name), executor
        if not is_language_model(served):
            raise UsageError(f"{served.name}: must be a language model, with input {IDS} and state, got another")
        self.tokenizer: Tokenizer = read_tokenizer(text_source(served.path, None))
        self._reads = is_text_to_text(served.model.manifest)
        self._ahead = self._settings.look_up
        if self._ahead and served.outputs[logits_of(served.model.manifest)].shape[-2:-1] == (1,):
            _LOG.warning("%s: no tokens are looked up: it gives the last logits only (--all-logits)", served.name)
            self._ahead = 0
        self._template: ChatTemplate | None = None
        self._grammars: Grammars | None = None
        self._adapted: dict[str, _Adapted] = {}
        self.admission = AdmissionQueue(served.name, settings.sequences, self._settings.queue)
        self._prefix_cache = (
            PrefixCache(served.model, settings.prefix_cache, settings.cache) if settings.prefix_cache else None
        )

    @property
    def context(self) -> int:
        """The most tokens of a prompt and its answer."""
        return min(self._settings.max_context, self.tokenizer.context or self._settings.max_context)

    def ids_of(self, request: CompletionRequest) -> list[list[int]]:
        """Return the tokens of each prompt; UsageError for more than fit, and for messages that make no text."""
        if request.start and not self._reads:
            raise FieldError("start", "left out, as the model continues a text", f"{len(request.start)} tokens")
        chat = request.messages
        prompts = request.prompts if chat is None else [self._text(request, chat)]
        token_lists = [self.tokenizer.begin(one) if isinstance(one, str) else one for one in prompts]
        for ids in token_lists:
            self._check_length(request, ids)
        self._sequences(request.adapter)
        return token_lists

    def _check_length(self, request: CompletionRequest, ids: list[int]) -> None:
        """Raise FieldError unless a prompt and its answer fit."""
        if not 1 <= len(ids) < self.context:
            raise FieldError(
                request.text_field, f"1 to {self.context - 1} tokens (--max-context)", f"{len(ids)} tokens"
            )
        if request.tokens is not None and len(ids) + request.tokens > self.context:
            rule = f"at most {self.context - len(ids)} behind {len(ids)} tokens (--max-context)"
            raise FieldError(request.tokens_field, rule, request.tokens)

    def _text(self, request: CompletionRequest, messages: list[dict[str, object]]) -> str:
        """Return messages by the chat template; without one, the only message to a model that reads a text."""
        if self._reads and self.tokenizer.template is None:
            if request.tools:
                raise FieldError(
                    "tools", "left out, as the model has no chat template", f"{len(request.tools)} of them"
                )
            roles = [str(message["role"]) for message in messages]
            if roles != ["user"]:
                rule = "one message of the user, as the model has no chat template"
                raise FieldError(request.text_field, rule, ", ".join(roles))
            return str(messages[0]["content"])
        text = self.template.render(messages, tools=request.tools)
        return text + (form_of(self.template.source).begin if request.called else "")

    def _sequences(self, adapter: str) -> _Adapted:
        """Return the sequences with the adapter of a name, which is read the first time; errors of `read_adapter`."""
        if adapter not in self._adapted:
            model = self.served.model
            weights = read_adapter(self._settings.lora[adapter], model.manifest) if adapter else None
            self._adapted.setdefault(adapter, _Adapted(model, weights, self._executor))
        return self._adapted[adapter]

    @property
    def template(self) -> ChatTemplate:
        """The chat template; UsageError without one."""
        if self._template is None:
            self._template = self.tokenizer.chat_template()
        return self._template

    def constraint(self, request: CompletionRequest) -> Constraint | None:
        """Return the grammar of answers, None for any text; UsageError for one that cannot be read."""
        if request.called:
            form = form_of(self.template.source)
            functions = [function_of(tool) for tool in request.called]
            grammar = grammar_of_calls(functions, form.key, listed=form.listed)
        elif request.grammar is not None:
            grammar = grammar_of(*request.grammar)
        else:
            return None
        if self._grammars is None:
            vocab_size = self.served.outputs[logits_of(self.served.model.manifest)].shape[-1]
            self._grammars = Grammars(self.tokenizer, vocab_size if isinstance(vocab_size, int) else None)
        return self._grammars.constraint(grammar)

    @asynccontextmanager
    async def answer(
        self, request: CompletionRequest, ids: Sequence[int], constraint: Constraint | None = None, number: int = 0
    ) -> AsyncGenerator[Answer]:
        """Yield an answer once a sequence is free; QueueFullError if too many requests wait for one.

        `number`: of the answer among those to one prompt.
        """
        async with self.admission.taken():
            count = self.context - len(ids) if request.tokens is None else request.tokens
            rules = request.rules.numbered(number)
            continuation = Continuation(count, rules.sampling, frozenset(self.tokenizer.stop))
            copied = None if constraint is None else constraint.copy()
            text = StopTextFilter(self.tokenizer, request.stop, begins=self._reads)
            if self._reads:
                loop = EncoderDecoderLoop(self.served.model, source_inputs(ids))
                start = request.start or start_of(self.served.model.manifest)
                yield Answer(loop, text, self._executor, start, continuation, TokenSampler(rules, start, copied))
                return
            sequences = self._sequences(request.adapter)
            generator = sequences.idle.pop() if sequences.idle else Generator(self.served.model, sequences.adapter)
            answer = Answer(
                *(generator, text, self._executor, ids, continuation, TokenSampler(rules, ids, copied)),
                batch=None if self._ahead else sequences.batch,
                prefix_cache=self._prefix_cache,
                adapter=sequences.digest,
                ahead=self._ahead,
            )
            try:
                yield answer
            finally:
                if answer.is_done:
                    generator.reset()  # an answer must not see another's tokens
                    sequences.idle.append(generator)


class _Adapted:
    """Sequences of a model with one adapter, or without: the idle ones, and those that go on together."""

    def __init__(self, model: CompiledModel, adapter: dict[str, Array] | None, executor: Executor) -> None:
        self.adapter, self.idle = adapter, list[Generator]()
        self.digest = b"" if adapter is None else digest_of(adapter)
        self.batch = ContinuousBatch(model, executor) if has_row_lengths(model.manifest) else None


def is_language_model(served: ServedModel) -> bool:
    """True if a model has the inputs of language models and keeps state."""
    if is_text_to_text(served.model.manifest):
        return True
    names = {t.name for t in served.inputs}
    return bool(served.model.manifest.variables) and IDS in names and names <= {*NAMES, LORA_A, LORA_B}
