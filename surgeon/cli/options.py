"""Options that several commands share, and the reading of their texts."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from surgeon.cli.console import UsageError
from surgeon.numerals import NO_LENGTH, natural

LIMIT = 600.0  # seconds
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
WAYS = ("onnxruntime", "witness", "torch")


class Allowed(StrEnum):
    """What happens only when it is allowed: two kinds of rules, ATen nodes left, unread inputs."""

    APPROXIMATE = "approximate"
    CONTRACT = "contract"
    LEFTOVER = "leftover"
    UNREAD = "unread"


class Required(StrEnum):
    """How good the verdict must be for the result to be saved."""

    RUNS = "runs"
    EQUIVALENT = "equivalent"


def recipe_names(incomplete: str) -> list[str]:
    """Bundled recipes for the shell's completion; files are the shell's own business."""
    from surgeon.recipe import bundled

    return [name for name in bundled() if name.startswith(incomplete)]


def target_names(incomplete: str) -> list[str]:
    """Runtimes whose lists there are, for the shell's completion."""
    from surgeon.targets import targets

    return [name for name in targets() if name.startswith(incomplete)]


_LISTS = (
    "`tensorrt-8.6` and others, `openvino`, `rknn`, `coreml-mlprogram`, `coreml-neuralnetwork`, "
    "`nnapi`, `webgl`, `webgpu`, `webnn`, `tract`, `onnx2ncnn`, `onnx2tf`, `onnx2torch`, `sentis`, "
    "`barracuda`, `burn`, `migraphx`, `onnx-mlir`, `tidl`, `esp-dl`, `paddle`, `tinygrad`, "
    "`tpu-mlir`, `nxp`, or a YAML file of your own: `operators: [Conv, ...]`."
)

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="An ONNX file.", show_default=False)]
TargetName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"Also what this runtime's own list of operators lacks: {_LISTS}",
        autocompletion=target_names,
        show_default=False,
    ),
]
Before = Annotated[
    Path, typer.Argument(metavar="A", help="The model as it was.", show_default=False)
]
After = Annotated[
    Path, typer.Argument(metavar="B", help="The model as it is now.", show_default=False)
]
Shape = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="NAME=DIMS",
        help="An input's shape: numbers, and names for dims that stay dynamic, as in "
        "`x=1,1,128,t`. Once for each input.",
        rich_help_panel="What is known",
    ),
]
Assume = Annotated[
    list[str] | None,
    typer.Option(
        "--assume",
        metavar="FACT",
        help="What else is true, such as `t % 32 == 0`, `t >= 64`, `t <= 512` or `h == w`.",
        rich_help_panel="What is known",
    ),
]
Value = Annotated[
    list[str] | None,
    typer.Option(
        "--value",
        metavar="NAME=VALUE",
        help="An input that always has this value, and is no input of the result: `sr=16000`, "
        "`size=720,1280`, `use_cache=true`, or an .npy file. Once for each input.",
        rich_help_panel="What is known",
    ),
]
Allow = Annotated[
    list[Allowed] | None,
    typer.Option(
        "--allow",
        help="Rules that may fire although they are not exact, or change what the model promises; "
        "ATen nodes, or inputs that nothing reads, that may be left.",
        rich_help_panel="Rules",
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        metavar="RULE",
        help="A rule that is left out, by its id, or as `recipe/id`.",
        rich_help_panel="Rules",
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        metavar="NODE",
        help="Nodes that stay as they are: an operator, a node's name, or a value that it gives.",
        rich_help_panel="Rules",
    ),
]
References = Annotated[
    list[str] | None,
    typer.Option(
        "--reference",
        metavar="WAY",
        help="What the result is compared with: `onnxruntime`, `witness` (surgeon's own numpy "
        "execution of ATen nodes), `torch`, or recorded outputs: .npz files, each with its own "
        "`--reference`.",
        rich_help_panel="Checking",
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="NAME=SPEC",
        help="How an input is drawn: `uniform(0,1)`, `normal(0,1)`, `ints(0,1000)`, `bool`, "
        "`ones`, `zeros`, `mask`, `lengths`, `image`, `tokens(30522)`, `values(1,2,3)`.",
        rich_help_panel="Checking",
    ),
]
Data = Annotated[
    list[Path] | None,
    typer.Option(
        "--data",
        metavar="FILE|DIR",
        help="Real inputs, compared beside drawn ones: .npz files by input name, or folders of "
        "them or of `test_data_set_*/input_*.pb`.",
        rich_help_panel="Checking",
    ),
]
Partial = Annotated[
    bool,
    typer.Option(
        "--save-partial",
        help="If the whole result differs although each rewrite agreed, leave out the rewrites "
        "that make it differ, and save the rest.",
        rich_help_panel="Checking",
    ),
]
Evidence = Annotated[
    Path | None,
    typer.Option(
        "--keep-evidence",
        metavar="DIR",
        help="For each rewrite that was refused because it differs, and for a result that does: a "
        "folder in DIR with both models, inputs, outputs, and a script that runs them.",
        rich_help_panel="Checking",
    ),
]
KeepOverridable = Annotated[
    bool,
    typer.Option(
        "--keep-overridable",
        help="Keep initializers that are graph inputs overridable, also in files of PyTorch's "
        "exporter, which lists every weight among the inputs.",
        rich_help_panel="What is known",
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout",
        min=0.1,
        metavar="SECONDS",
        help="Limit for one run of a model in onnxruntime, or one step of onnxsim.",
        rich_help_panel="Limits",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Address space of the process in which they run, such as `8G`; by default four fifths "
        "of the memory that is free. No limit on Windows.",
        rich_help_panel="Limits",
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "-v", "--verbose", help="Say everything: each change and miss, and the traceback of a bug."
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print only errors and warnings.")]
LogFile = Annotated[
    Path | None,
    typer.Option("--log-file", metavar="FILE", help="Write everything that happens, with times."),
]
Opset = Annotated[
    int | None,
    typer.Option(
        "--opset",
        min=1,
        metavar="N",
        help="The opset of the result, brought about behind all recipes; refused if it cannot be "
        "reached. Lowering goes down to 11.",
        rich_help_panel="Output",
    ),
]
Fitted = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="NAME",
        help="Last of all, write what this runtime's own list of operators lacks in operators that "
        f"it has: {_LISTS}",
        autocompletion=target_names,
        show_default=False,
        rich_help_panel="Output",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse a result from which a rewrite or a step was left out.",
        rich_help_panel="Checking",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]


def _dim(part: str) -> int | str:
    """A length that a tensor can have, or a name that looks like no number.

    Raises:
        UsageError: It is neither.
    """
    number = natural(part)
    if number is not None and number < NO_LENGTH:
        return number
    if number is None and part[0] not in "-+.?" and not part[0].isdigit():
        return part
    raise UsageError(
        f"`{part}` is not a dimension's size",
        where="--shape",
        mend="Give a number below 2^31, or a name, such as `t`, where the dimension is dynamic.",
    )


def read_shapes(texts: Sequence[str] | None) -> dict[str, list[int | str]]:
    """`x=1,1,128,t` as input name and dims. A name may hold `=`: the last one counts.

    Raises:
        UsageError: The text does not have this form, or names an input twice.
    """
    shapes: dict[str, list[int | str]] = {}
    for text in texts or ():
        name, equals, dims = text.rpartition("=")
        parts = [part.strip() for part in dims.strip().strip("[]()").split(",")]
        if dims.strip().strip("[]()") == "":
            parts = []
        if not equals or not name or not all(parts):
            raise UsageError(
                f"`{text}` is not an input's shape",
                where="--shape",
                mend="Write it as `x=1,1,128,t`: the input's name, then a number or a name for "
                "each dimension.",
            )
        if name in shapes:
            raise UsageError(
                f"input `{name}` has two shapes", where="--shape", mend="Leave one of them out."
            )
        shapes[name] = [_dim(part) for part in parts]
    return shapes


def read_pairs(
    texts: Sequence[str] | None, *, where: str, what: str, mend: str, twice: str
) -> dict[str, str]:
    """`NAME=VALUE` as name and value. A name may hold `=`: the last one counts.

    Args:
        texts: As they were given.
        where: The option.
        what: What is said of a text that has not this form.
        mend: Which form it is to have.
        twice: What is said of a name that stands twice, with `{}` for it.

    Raises:
        UsageError: A text does not have this form, or has a name that another has.
    """
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.rpartition("=")
        if not equals or not name or not value.strip():
            raise UsageError(f"`{text}` {what}", where=where, mend=mend)
        if name in found:
            raise UsageError(twice.format(f"`{name}`"), where=where, mend="Leave one of them out.")
        found[name] = value.strip()
    return found


def read_inputs(texts: Sequence[str] | None) -> dict[str, str]:
    """`ids=tokens(30522)` as input name and way of drawing.

    Raises:
        UsageError: As for `read_pairs`.
    """
    return read_pairs(
        texts,
        where="--input",
        what="says nothing of an input",
        mend="Write it as `ids=tokens(30522)`: the input's name, then how it is drawn.",
        twice="input {} is drawn in two ways",
    )


def read_values(texts: Sequence[str] | None) -> dict[str, str]:
    """`sr=16000` as input name and value.

    Raises:
        UsageError: As for `read_pairs`.
    """
    return read_pairs(
        texts,
        where="--value",
        what="is not an input's value",
        mend="Write it as `sr=16000`: the input's name, then its value.",
        twice="input {} has two values",
    )


def read_size(
    text: str | None, *, where: str = "--memory", what: str = "amount of memory", like: str = "8G"
) -> int | None:
    """`8G` as bytes.

    Raises:
        UsageError: The text is no size.
    """
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    if found is None or float(found[1]) == 0:
        a = "an" if what[0] in "aeiou" else "a"
        raise UsageError(f"`{text}` is not {a} {what}", where=where, mend=f"Write it as `{like}`.")
    return int(float(found[1]) * _UNITS[found[2]])


def read_references(texts: Sequence[str] | None) -> str | list[str] | None:
    """One way, or files with recorded outputs.

    Raises:
        UsageError: There is no such way or file, or a way stands beside others.
    """
    given = list(texts or ())
    for text in given:
        if text in WAYS and len(given) > 1:
            raise UsageError(
                f"`{text}` beside another reference",
                where="--reference",
                mend="Give one way, or several .npz files.",
            )
        if text not in WAYS and not os.path.exists(text) and not glob.glob(text):
            raise UsageError(
                f"there is no reference `{text}`",
                where="--reference",
                mend=f"Use {', '.join(WAYS)}, or the path of an .npz file that exists.",
            )
    return given[0] if len(given) == 1 else given or None
