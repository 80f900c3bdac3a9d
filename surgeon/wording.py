"""Options of the command line in the words of Python: what an error says to a script."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

# What each option is called from Python. `True` and `False` are what a flag gives; a mapping is
# by input name; of several texts one may stand alone.
_FLAGS = {
    "--no-verify": "verify=False",
    "--save-partial": "save_partial=True",
    "--strict": "strict=True",
    "--without-weights": "without_weights=True",
    "--keep-overridable": "keep_overridable=True",
}
_MAPPINGS = {
    "--shape": "shape",
    "--value": "values",
    "--input": "inputs",
    "--metadata": "metadata",
    "--rename": "rename",
}
_TEXTS = {
    "--assume": "assume",
    "--allow": "allow",
    "--keep": "keep",
    "--reference": "reference",
    "--record": "record",
    "--data": "data",
    "--target": "target",
    "--custom": "custom",
    "--require": "require",
    "--keep-evidence": "keep_evidence",
    "--external-data": "external_data",
    "--external-name": "external_name",
    "--from": "inputs",
    "--to": "outputs",
    "--outputs-of": "outputs_of",
    "--weights-as-inputs": "weights_as_inputs",
    "--state": "state",
}
_NUMBERS = {
    "--external-above": "external_above",
    "--opset": "opset",
    "--tolerance": "allow_approximate",
    "--timeout": "timeout",
    "--memory": "memory",
    "--most": "most",
}
_CALLS = {"--custom-ops": "surgeon.custom_ops"}  # what holds around a call
_ALWAYS_SEVERAL = ("--custom", "--from", "--to", "--outputs-of", "--weights-as-inputs")
_REPORT = "--report"  # which an error carries
_CODE = re.compile(r"`(--[^`]+)`")


def in_python(text: str) -> str:
    """A sentence with the options in its code as the arguments of a call.

    Whole commands (`surgeon inspect MODEL`) stay, and options that no function has.
    """
    return _CODE.sub(lambda found: f"`{_called(found[1])}`", text)


def place_in_python(where: str) -> str:
    """The same of a place, which may be an option: `--shape`, or `--data x.npz`."""
    return _called(where) if where.startswith("--") else where


def _called(code: str) -> str:
    try:
        given = list(_options(shlex.split(code)))
    except ValueError:  # an open quote, in a text that is cut
        return code
    told: dict[str, list[str]] = {}
    for option, values in given:
        if option not in {*_FLAGS, *_MAPPINGS, *_TEXTS, *_NUMBERS, *_CALLS, _REPORT}:
            return code
        told.setdefault(option, []).extend(values)
    return ", ".join(_argument(option, values) for option, values in told.items())


def _options(words: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each option and what follows it up to the next."""
    option, values = "", list[str]()
    for word in words:
        if word.startswith("--"):
            if option:
                yield option, values
            option, values = word, []
        else:
            values.append(word)
    yield option, values


def _argument(option: str, values: list[str]) -> str:
    if option == _REPORT:
        return "error.report"
    if option in _CALLS:
        return f"{_CALLS[option]}({', '.join(map(_quoted, values))})"
    if option in _FLAGS:
        return _FLAGS[option]
    if option in _NUMBERS:
        return "=".join([_NUMBERS[option], *values[:1]])
    name = _MAPPINGS.get(option) or _TEXTS[option]
    if not values:
        return name
    if option in _TEXTS:
        texts = ", ".join(map(_quoted, values))
        several = len(values) > 1 or option in _ALWAYS_SEVERAL
        return f"{name}=[{texts}]" if several else f"{name}={texts}"
    pairs = [_pair(option, *value.rpartition("=")[::2]) for value in values]
    return f"{name}={{{', '.join(pairs)}}}"


def _pair(option: str, name: str, value: str) -> str:
    if not name:  # an input's name alone
        return f"{_quoted(value)}: ..."
    if value == "...":
        return f"{_quoted(name)}: ..."
    if option in ("--input", "--metadata", "--rename"):
        return f"{_quoted(name)}: {_quoted(value)}"
    parts = [part if _is_number(part) else _quoted(part) for part in value.split(",")]
    if option == "--value" and len(parts) == 1:
        return f"{_quoted(name)}: {parts[0]}"
    return f"{_quoted(name)}: [{', '.join(parts)}]"


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"\.\.\.|-?\d+(\.\d+)?", text))


def _quoted(text: str) -> str:
    return f'"{text}"' if '"' not in text and "\\" not in text else repr(text)
