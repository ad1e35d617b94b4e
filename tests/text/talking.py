"""A small language model of random weights whose words are the bytes 0 to 63, with a chat template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests import libraries
from tests.frontends.gguf.networks import WORDS, Network
from tests.text.test_tokenizer import letters

TEMPLATE = "{% for m in messages %}{{ m['role'][0] | replace('u', '1') | replace('a', '2') | replace('s', '3') }}:"
TEMPLATE += "{{ m['content'] }};{% endfor %}{% if add_generation_prompt %}2:{% endif %}"


class Talking(Network):
    """Texts of digits and signs are tokens of one character each, but for 12."""

    template: str | None = TEMPLATE

    @property
    def metadata(self) -> dict[str, object]:
        tokens = [*letters()[:3], "12", *letters()[4:WORDS]]
        words = {"tokens": tokens, "merges": ["1 2"], "pre": "gpt-2", "eos_token_id": 2, "bos_token_id": 1}
        found = super().metadata | {f"tokenizer.ggml.{k}": v for k, v in words.items()}
        found["tokenizer.ggml.token_type"] = [3] * 3 + [1] * (WORDS - 3)
        found[f"{self.architecture}.context_length"] = 128
        return found | ({} if self.template is None else {"tokenizer.chat_template": self.template})


class Writing(Talking):
    """All bytes are tokens of one character each; <|im_end|> ends an answer, [TOOL_CALLS] is a mark."""

    template = "{% for t in tools or [] %}{{ t | tojson }};{% endfor %}{% for m in messages %}{{ m['role'] }}:"
    template += "{{ m['content'] }}{% for c in m['tool_calls'] or [] %}<tool_call>{{ c['function'] | tojson }}"
    template += "</tool_call>{% endfor %};{% endfor %}"

    @property
    def metadata(self) -> dict[str, object]:
        tokens = [*letters(), "<|im_end|>", "<s>", "[TOOL_CALLS]", "12"]
        words = {"tokens": tokens, "merges": ["1 2"], "eos_token_id": 256, "bos_token_id": 257}
        found = super().metadata | {f"tokenizer.ggml.{k}": v for k, v in words.items()}
        return found | {
            "tokenizer.ggml.token_type": [1] * 256 + [3] * 3 + [1],
            f"{self.architecture}.context_length": 4096,
        }


def library(folder: Path, name: str = "talk", **options: Any) -> Path:
    """Compile the network into a library in `folder`."""
    return compiled(Talking("qwen2", "Q8_0"), folder, name, **options)


def compiled(network: Network, folder: Path, name: str, **options: Any) -> Path:
    """Compile a network into a library in `folder`, which keeps its words."""
    made = libraries.library(network.write(folder / f"{name}.gguf"), folder / f"{name}.so", **options)
    (folder / f"{name}.gguf").unlink()
    return made
