"""Chat templates are rendered as transformers does, and hostile ones are ended."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from aot.text import template
from aot.text.template import ChatTemplate, TemplateError

MESSAGES = [{"role": "user", "content": "hé"}, {"role": "assistant", "content": "a\nb"}]
CHATML = """{%- for message in messages %}
    {%- if loop.first and messages[0]['role'] != 'system' %}
{{- '<|im_start|>system\nBe brief<|im_end|>\n' }}
    {%- endif %}
    {{- '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}
{%- endfor %}
{% if add_generation_prompt %}
{{ '<|im_start|>assistant\n' }}
{%- endif %}
"""


@pytest.fixture
def rendered() -> Iterator[list[ChatTemplate]]:
    made: list[ChatTemplate] = []
    yield made
    for one in made:
        one.close()


def test_messages_become_a_text(rendered: list[ChatTemplate]) -> None:
    one = ChatTemplate(CHATML)
    rendered.append(one)
    turns = "<|im_start|>user\nhé<|im_end|>\n<|im_start|>assistant\na\nb<|im_end|>\n"
    first = "<|im_start|>system\nBe brief<|im_end|>\n"
    assert one.render(MESSAGES) == first + turns + "<|im_start|>assistant\n"
    assert one.render(MESSAGES, answer=False).strip() == (first + turns).strip()


@pytest.mark.parametrize(("more", "role"), [("", "system"), ("{# developer #}", "developer")])
def test_developers_are_the_system_where_a_template_has_none(
    rendered: list[ChatTemplate], more: str, role: str
) -> None:
    one = ChatTemplate("{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}" + more)
    rendered.append(one)
    assert one.render([{"role": "developer", "content": "Be brief"}]) == f"{role}: Be brief"


GEMMA2 = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}\
{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}\
{{ raise_exception('Conversation roles must alternate') }}{% endif %}{% set role = message['role'] %}\
{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"""
DROPS = """{% for m in messages if m.role != 'system' %}{{ '<start_of_turn>' + m.role + '\n' + m.content }}<end_of_turn>
{% endfor %}"""


@pytest.mark.parametrize("source", [GEMMA2, DROPS])
def test_a_system_that_a_template_does_not_write_comes_before_the_user(
    rendered: list[ChatTemplate], source: str
) -> None:
    """A message of the system joins the first one of the user, as the template of Gemma 3 writes them."""
    one = ChatTemplate(source)
    rendered.append(one)
    system = {"role": "system", "content": "Be brief, please"}
    user = "<start_of_turn>user\nBe brief, please"
    answer = "<end_of_turn>\n<start_of_turn>assistant\na\nb<end_of_turn>\n"
    assert one.render([system, *MESSAGES]) == f"{user}\n\nhé{answer}"
    assert one.render([system]) == f"{user}<end_of_turn>\n"
    assert one.render(MESSAGES) == f"<start_of_turn>user\nhé{answer}"
    if source is GEMMA2:
        with pytest.raises(TemplateError, match="chat template: Conversation roles must alternate"):
            one.render([system, *MESSAGES, MESSAGES[1]])


def test_marks_filters_and_functions(rendered: list[ChatTemplate]) -> None:
    source = "{{ bos_token }}{% for m in messages %}{% if loop.index > 1 %}{% break %}{% endif %}{{ m | tojson }}"
    one = ChatTemplate(source + "{% endfor %}{{ strftime_now('%Y')[:2] }}{{ nothing }}", {"bos_token": "<s>"})
    rendered.append(one)
    assert one.render(MESSAGES) == '<s>{"role": "user", "content": "hé"}20'


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{% if tools is not none %}tools{% else %}none{% endif %}", "none"),
        ("{% if documents is none %}none{% endif %}{% if tools is defined %} defined{% endif %}", "none defined"),
        ("{% if tools %}tools{% endif %}{{ tools }}", "None"),
        ("{% for m in messages %}{% generation %}{{ m.content[:1] }}{% endgeneration %}|{% endfor %}", "h|a|"),
        ("{%- for m in messages -%} {%- generation -%} x {%- endgeneration -%} {%- endfor -%}", "xx"),
        ("{{ {'b': 1, 'a': 'é'} | tojson(ensure_ascii=True, sort_keys=True) }}", '{"a": "\\u00e9", "b": 1}'),
        ("{{ [1, 2] | tojson(separators=(',', ':')) }}", "[1,2]"),
    ],
)
def test_names_and_blocks_of_transformers(source: str, text: str, rendered: list[ChatTemplate]) -> None:
    """The texts are those of transformers 5."""
    one = ChatTemplate(source)
    rendered.append(one)
    assert one.render(MESSAGES) == text


def test_errors_of_a_template_do_not_end_the_process(rendered: list[ChatTemplate]) -> None:
    one = ChatTemplate("{% if messages | length > 1 %}{{ raise_exception('one message only') }}{% endif %}fine")
    rendered.append(one)
    with pytest.raises(TemplateError, match="one message only"):
        one.render(MESSAGES)
    assert one.render(MESSAGES[:1]) == "fine"


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("{% for x in messages %}", "TemplateSyntaxError"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "SecurityError"),
        ("{{ messages.append(1) }}", "SecurityError"),
        ("{% include '/etc/passwd' %}", "TypeError|no loader"),
        ("{{ range(10 ** 9) | list }}", "OverflowError|too big"),
        ("{{ 'a' * 10 ** 10 }}", "at most 512 MB"),
        ("{% for x in range(99999) %}{{ 'a' * 9999 }}{% endfor %}", "at most 16777216 characters"),
    ],
)
def test_hostile_templates_are_refused(source: str, rule: str, rendered: list[ChatTemplate]) -> None:
    one = ChatTemplate(source)
    rendered.append(one)
    with pytest.raises(TemplateError, match=rule):
        one.render(MESSAGES)


def test_a_template_that_does_not_end_is_ended(rendered: list[ChatTemplate], monkeypatch: pytest.MonkeyPatch) -> None:
    """By the limit of processor time, or by the clock where other processes take it."""
    monkeypatch.setattr(template, "SECONDS", 4.0)
    one = ChatTemplate("{% for x in range(99999) %}{% for y in range(99999) %}{% endfor %}{% endfor %}")
    rendered.append(one)
    begin = time.monotonic()
    with pytest.raises(TemplateError, match="must be rendered in 4 s"):
        one.render(MESSAGES)
    assert time.monotonic() - begin < 60


def test_long_templates_are_refused() -> None:
    with pytest.raises(TemplateError, match="at most 1048576 characters"):
        ChatTemplate("a" * (1 << 21))
