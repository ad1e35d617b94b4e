"""`aot chat`: conversations, with the tokenizer and the template that a library keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aot.cli import app
from aot.runtime import Generator, Sampling, load
from aot.text.chat import Chat
from aot.text.tokenizers.tokenizer import read_tokenizer
from tests.text import talking
from tests.text.test_tokenizer import letters

QUESTIONS = ["12?", "3+4=", "(5)"]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return talking.library(tmp_path_factory.mktemp("chat"))


def answer(library: Path, text: str, count: int) -> str:
    """Continue a text with a generator of its own."""
    tokenizer = read_tokenizer(library)
    made = Generator(load(library, threads=1)).generate(tokenizer.encode(text), count, Sampling(), tokenizer.stop)
    return tokenizer.decode(made)


def test_a_library_keeps_its_tokenizer(library: Path) -> None:
    found = read_tokenizer(library)
    assert found.encode("1+2") == [ord(c) for c in "1+2"]
    assert (found.stop, found.template, found.context) == ((2,), talking.TEMPLATE, 128)
    assert found.marks == {"bos_token": letters()[1], "eos_token": letters()[2]}


def test_a_conversation_is_its_whole_text(library: Path) -> None:
    """Tokens that are kept from before do not change an answer."""
    tokenizer = read_tokenizer(library)
    talk = Chat(Generator(load(library, threads=1)), tokenizer, tokenizer.chat_template(), system="0")
    text, parts = "3:0;", list[str]()
    for question in QUESTIONS:
        text += f"1:{question};2:"
        got = talk.say(question, 5, Sampling(), parts.append)
        assert got == answer(library, text, 5) == "".join(parts)
        text += f"{got};"
        parts.clear()
    assert [m["role"] for m in talk.messages] == ["system", *["user", "assistant"] * 3]
    talk.reset()
    text = f"3:0;1:{QUESTIONS[0]};2:"
    assert talk.say(QUESTIONS[0], 5, Sampling(), parts.append) == answer(library, text, 5)
    talk.reset()
    first = talk.say(QUESTIONS[0], 5, Sampling(), lambda _: talk.end())
    assert first == answer(library, text, 1) == talk.messages[-1]["content"]


def test_command_line(library: Path) -> None:
    wanted = answer(library, "1:12?;2:", 4)
    found = CliRunner().invoke(app, ["chat", str(library), "12?", "--tokens", "4", "--threads", "1"])
    assert (found.exit_code, found.stdout) == (0, wanted + "\n")
    assert found.stderr.startswith("4 tokens, the first one after ") and found.stderr.endswith(" tokens/s\n")
    lines = "12?\n/reset\n12?\n/exit\nnever\n"
    found = CliRunner().invoke(app, ["chat", str(library), "--tokens", "4", "--threads", "1"], input=lines)
    assert (found.exit_code, found.stdout) == (0, f"{wanted}\n{wanted}\n")


def test_commands_keep_messages_and_lines_go_on(library: Path, tmp_path: Path) -> None:
    file, given = tmp_path / "talk.json", ["chat", str(library), "--tokens", "4", "--threads", "1", "--quiet"]
    lines = f"12?\n/save {file}\n/system 0\n1\\\n+2\n/load {file}\n3\n"
    found = CliRunner().invoke(app, given, input=lines)
    first, other = answer(library, "1:12?;2:", 4), answer(library, "3:0;1:1\n+2;2:", 4)
    third = answer(library, f"1:12?;2:{first};1:3;2:", 4)
    made = found.stdout.replace("\r", "")  # which the runner turns
    assert (found.exit_code, made) == (0, f"{first}\n{other}\n{third}\n".replace("\r", ""))
    assert json.loads(file.read_text()) == [{"role": "user", "content": "12?"}, {"role": "assistant", "content": first}]
    file.write_text('[{"role": "user"}]')
    found = CliRunner().invoke(app, given, input=f"/load {file}\n")
    assert found.exit_code == 2 and "must be a list of messages with role and content" in " ".join(found.output.split())


def test_another_template_and_none(library: Path, tmp_path: Path) -> None:
    other = tmp_path / "t.jinja"
    other.write_text("{{ messages[-1].content }}")
    found = CliRunner().invoke(app, ["chat", str(library), "12?", "--tokens", "4", "--template", str(other)])
    assert found.stdout.rstrip() == answer(library, "12?", 4).rstrip()  # the runner turns carriage returns
    tokenizer = read_tokenizer(library)
    tokenizer = type(tokenizer)(tokenizer.inner, tokenizer.stop)
    with pytest.raises(Exception, match="must have a chat template, got none"):
        tokenizer.chat_template()
