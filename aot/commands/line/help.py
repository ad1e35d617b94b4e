"""The help of the commands: their options in groups, and examples at the end."""

from __future__ import annotations

from typing import Any

from typer import BadParameter
from typer.core import TyperCommand

from aot.options.declaration import Group

ARGUMENTS = "Arguments"

EXAMPLES = {
    "compile": """
        aot compile model.xml -o model.so
        aot compile model.onnx --shape image=n,3,224,224 --dim n=1..64
        aot compile model.xml --target x86-64-v2,v3,v4 --weights external
        aot compile folder --weights int4
        aot compile model.tflite -o model.o --header model.h""",
    "run": """
        aot run model.so x.npy -o results.npz
        aot run model.so picture.png --top 5 --labels names.txt
        aot run model.so ids=ids.npy mask=mask.npy --repeat 10""",
    "generate": """
        aot generate model.so "Once upon a time" --tokens 64
        aot generate model.so "Once upon a time" --temperature 0.8 --top-p 0.9 --seed 1""",
    "chat": """
        aot chat model.so
        aot chat model.so "Which rivers flow through Paris?" --system "Answer in one sentence." """,
    "embed": """
        aot embed model.so "Which rivers flow through Paris?" > vectors.json""",
    "transcribe": """
        aot transcribe model.so speech.wav
        aot transcribe model.so speech.wav --language de --timestamps""",
    "speak": """
        aot speak model.so "Good morning." -o speech.wav --speed 1.2""",
    "rerank": """
        aot rerank model.so "Where is Paris?" "Paris lies on the Seine." "A cat sleeps on the sofa." """,
    "quantize": """
        aot quantize model.onnx --data samples.npz -o model_int8.xml --max-error 0.05
        aot quantize decoder.xml --weights int4 --group 64 -o decoder_int4.xml""",
    "serve": """
        aot serve model.so --port 8000 --max-batch 32
        aot serve digits=model.so models/ --grpc-port 8001 --token-file token""",
    "bench": """
        aot bench model.so
        aot bench model.so --requests 4 --against old.so
        aot bench model.so --per-kernel --trace trace.json""",
    "compare": """
        aot compare model.xml model.so
        aot compare model.onnx --against onnxruntime --data x.npz""",
    "info": """
        aot info model.so
        aot info model.onnx --json
        aot info --machine
        aot info --targets""",
    "report": """
        aot report model.so --model model.xml -o report.html""",
    "demo": """
        aot demo net.wasm -o site --labels names.txt""",
    "dump": """
        aot dump model.xml --stage loops
        aot dump model.xml --stage groups -v
        aot dump model.xml --stage asm --kernel k1_convolution""",
    "rewrite": """
        aot rewrite model.onnx --explain merge_reshapes""",
    "convert": """
        aot convert model.onnx -o model.xml
        aot convert model.onnx -o model.xml --compress-to-f16""",
    "check": """
        aot check model.onnx
        aot check model.onnx --extensions folder""",
    "cache": """
        aot cache
        aot cache ls folder
        aot cache gc folder""",
    "config": """
        aot config model.pb rules.json -o full.json""",
    "ops": """
        aot ops""",
    "sign": """
        aot sign model.so key.pem""",
    "verify": """
        aot verify model.so key.pub""",
    "sbom": """
        aot sbom model.so -o model.cdx.json""",
    "provenance": """
        aot provenance model.so --model model.xml -o model.intoto.json""",
}


def epilog(command: str) -> str:
    """Return the examples of a command as the end of its help; their lines are not wrapped."""
    return "\b\nExamples:\n" + "\n".join(f"  {line.strip()}" for line in EXAMPLES[command].strip().splitlines())


MIN_GROUPED_OPTIONS = 25  # number of a command's options from which on its help has groups


class GroupedCommand(TyperCommand):
    """A command with a help that lists many options in groups, each in a panel of typer's with a title."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; strip pydantic's prefix `Value error, ` from the message of an error."""
        try:
            return super().parse_args(ctx, args)
        except BadParameter as error:
            error.message = error.message.replace("Value error, ", "")
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        parameters = self.get_params(ctx)
        if len(parameters) < MIN_GROUPED_OPTIONS:
            super().format_options(ctx, formatter)
            return
        rows: dict[str, list[tuple[str, str]]] = {title: [] for title in (ARGUMENTS, *Group)}
        for parameter in parameters:
            panel = getattr(parameter, "rich_help_panel", None)
            title = ARGUMENTS if parameter.param_type_name == "argument" else Group(panel or Group.OTHERS)
            if record := parameter.get_help_record(ctx):
                rows[title].append(record)
        for title, records in rows.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
