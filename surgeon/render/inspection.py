"""What is in a model, as text."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from surgeon.faults import WIDELY_READ, mend_of
from surgeon.misexported import SAID
from surgeon.misfits import UNLIKE
from surgeon.render import words
from surgeon.spelling import is_foreign

if TYPE_CHECKING:
    from surgeon.ends import Value
    from surgeon.inspection import Foreign, Inspection
    from surgeon.targets import Fit
    from surgeon.weights import Weight

MOST_OPERATORS = 30
MOST_VALUES = 30
MOST_MISFITS = 12
_LARGE = 1 << 20  # bytes of weights from which on the largest are named

_COUNTING = ("NonZero", "NonMaxSuppression", "Compress", "Unique")
_DECIDING = ("If", "Loop", "Scan")
_RUN = 7  # the oldest opset that onnxruntime runs


def inspection(found: Inspection, *, verbose: bool = False) -> RenderableType:
    """The file, its interface, its operators, and what stands in the way of running it."""
    parts: list[RenderableType] = [
        Text(words.name(found.source), style="bold"),
        Padding(_facts(found), (0, 0, 0, 2)),
    ]
    parts += [Text("\nInterface", style="bold"), Padding(_interface(found), (0, 0, 0, 2))]
    most = len(found.operators) if verbose else MOST_OPERATORS
    parts += [Text("\nOperators", style="bold"), Padding(_operators(found, most), (0, 0, 0, 2))]
    parts.append(Text("\nWhat stands in the way", style="bold"))
    obstacles = _obstacles(found, verbose=verbose)
    parts.extend(map(words.indented, obstacles))
    if found.fit is not None:
        parts.append(Text(f"\nFor {found.fit.title}", style="bold"))
        parts.extend(map(words.indented, _fit(found.fit)))
    return Group(*parts)


def _facts(found: Inspection) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    opsets = ", ".join(
        f"{words.name(domain)} {version}" for domain, version in found.opsets.items()
    )
    rows = [
        ("file", f"{words.size(found.size)}, IR version {found.ir_version}"),
        ("producer", words.name(found.producer) or "not named"),
        ("opsets", opsets or "none imported"),
        ("weights", _weights(found)),
    ]
    if found.weight_bytes >= _LARGE:
        rows.append(("largest", "\n".join(map(_weight, found.largest))))
    for file in found.external:
        state = "missing, or not in the folder" if file.size is None else words.size(file.size)
        if file.size is not None and file.size < file.needed:
            state += f", and weights reach to {words.size(file.needed)}: it is cut off"
        rows.append(
            (
                "data file",
                f"{words.name(file.name)}: {state}, {words.count(file.tensors, 'tensor')}",
            )
        )
    if found.functions:
        rows.append(("functions", words.listed(found.functions)))
    if found.subgraphs:
        rows.append(("bodies", f"{found.subgraphs:,} of If, Loop and Scan nodes"))
    for label, said in rows:
        table.add_row(label, Text(said))
    return table


def _weights(found: Inspection) -> str:
    said = f"{words.count(found.initializers, 'initializer')}, {words.size(found.weight_bytes)}"
    if len(found.weight_dtypes) > 1:
        sizes = (f"{dtype} {words.size(size)}" for dtype, size in found.weight_dtypes.items())
        said += f": {', '.join(sizes)}"
    if found.overridable:
        said += f"; {found.overridable:,} of them are graph inputs too"
    return said


def _weight(found: Weight) -> str:
    return f"{words.size(found.size):>9}  {found.dtype} {[*found.shape]}  {words.name(found.name)}"


def _interface(found: Inspection) -> Table:
    table = interface(found.inputs, found.outputs, found.defaults)
    if found.dynamic:
        table.add_row("dynamic", Text(words.listed(found.dynamic, 20)), "", "")
    return table


def ends(inputs: Sequence[Value], outputs: Sequence[Value], weights: int) -> RenderableType:
    """The inputs and outputs of a part, and how many weights stand among the inputs."""
    shown: list[RenderableType] = [interface(inputs, outputs)]
    if weights:
        count = words.count(weights, "weight is an input", "weights are inputs")
        shown.append(Text(f"{count} too, which `listed-constants` ends", "dim"))
    return Padding(Group(*shown), (0, 0, 0, 2))


def interface(
    inputs: Sequence[Value], outputs: Sequence[Value], defaults: Sequence[Value] = ()
) -> Table:
    """Inputs, those that have a value in the file, and outputs, a line each."""
    table = Table.grid(padding=(0, 2))
    for label, values in (("input", inputs), ("default", defaults), ("output", outputs)):
        for line in _values(label, values):
            table.add_row(*line)
    return table


def _values(label: str, values: Sequence[Value]) -> Iterator[tuple[str, Text, Text, Text]]:
    for value in values[:MOST_VALUES]:
        shape = Text(words.shape(value.shape))
        yield label, Text(words.name(value.name)), Text(words.clean(value.kind)), shape
    if len(values) > MOST_VALUES:
        yield label, Text(f"and {len(values) - MOST_VALUES:,} more"), Text(), Text()


def _operators(found: Inspection, most: int) -> Table:
    strange = {foreign.operator for foreign in found.foreign}
    table = Table.grid(padding=(0, 3))
    table.add_column(justify="right")
    names = sorted(found.operators, key=lambda name: (name not in strange, -found.operators[name]))
    most += len(names) == most + 1  # a line that hides one saves none
    for name in names[:most]:
        style = "yellow" if name in strange else ""
        table.add_row(f"{found.operators[name]:,}", Text(words.name(name), style=style))
    if len(names) > most:
        rest = sum(found.operators[name] for name in names[most:])
        table.add_row(Text(f"{rest:,}", style="dim"), Text(f"{len(names) - most} more operators"))
    total = sum(found.operators.values())
    kinds = words.count(len(found.operators), "operator")
    table.add_row(Text(f"{total:,}", style="bold"), Text(f"nodes, {kinds}", style="bold"))
    return table


def _obstacles(found: Inspection, *, verbose: bool) -> Iterator[RenderableType]:
    """What keeps runtimes from the model, and the command that helps."""
    yield from _of_nodes(found)
    yield from _of_interface(found)
    yield from _of_claims(found)
    yield from _of_run_time(found.operators)
    yield from _of_loading(found)
    yield from _of_misfits(found, verbose=verbose)
    if (line := _next_step(found, verbose=verbose)) is not None:
        yield line


def _of_nodes(found: Inspection) -> Iterator[RenderableType]:
    if found.foreign:
        table = Table.grid(padding=(0, 2))
        table.add_column(justify="right")
        for foreign in found.foreign:
            table.add_row(f"{foreign.count:,}", _foreign(foreign))
        yield table
        if any(not (f.runs or f.recipes or is_foreign(f.operator)) for f in found.foreign):
            said = "what nobody knows can be said by a recipe's `functions`: it is compared by them"
            runs = "or onnxruntime runs it from a library: `--custom-ops LIBRARY`"
            yield Text(f"{said}, and shapes behind it are known; {runs}", "dim")
    if found.computed_weights:
        kernels = words.count(found.computed_weights, "convolution")
        yield Text(f"{kernels} with a computed kernel: some runtimes want constants", "yellow")
    if found.bfloat16:
        values = words.count(found.bfloat16, "input and weight", "inputs and weights")
        more = "few runtimes compute in it, and onnxruntime nothing on a CPU"
        yield Text(f"{values} in bfloat16: {more}; `bfloat16-in-float32` mends it", "yellow")


def _of_interface(found: Inspection) -> Iterator[Text]:
    for names, did, recipe in (
        (found.cast, "cast at first", "input-types"),
        (found.cast_behind, "cast at last", "output-types"),
        (found.turned, "turned, to channels first say, at first", "channels-first"),
    ):
        if names:
            said = words.listed(names, 3)
            yield Text(f"{said}: only {did}, which `{recipe}` leaves to the caller", "dim")
    constants = found.producer.startswith("pytorch") and not found.defaults  # `clean` takes them so
    if found.overridable and found.ir_version > 3 and not constants:
        count = words.count(found.overridable, "weight stands", "weights stand")
        yield Text(f"{count} among the inputs: `listed-constants` makes them constants", "dim")
    if found.deciding:
        said, them = words.listed(found.deciding, 3), "them" if found.deciding[1:] else "it"
        told = f"`--value {words.name(found.deciding[0])}=...`"
        yield Text(f"{said}: branches, turns or sizes depend on {them}; {told} settles one", "dim")


def _of_claims(found: Inspection) -> Iterator[Text]:
    """What the file says of itself that is false, and what it says as few expect it."""
    if found.misstated:
        have = "they have" if found.misstated[1:] else "it has"
        said = f"{words.listed(found.misstated, 3)}: the file states another type or shape than"
        yield Text(f"{said} {have}, which `state-shapes` sets right", "yellow")
    if found.below_zero:
        said = (
            f"{words.listed(found.below_zero, 3)}: sizes below 0 are declared, and read as unknown"
        )
        yield Text(f"{said}; `state-shapes` leaves them open, `--shape` gives them names", "yellow")
    if found.unsorted:
        said = "nodes stand in front of what they read, which others refuse"
        yield Text(f"{said} (not topologically sorted); `state-shapes` sorts them", "yellow")
    if found.training:
        nodes = words.count(found.training, "node")
        said = "exported without `model.eval()`; see `eval-mode` and `rare-forms`"
        yield Text(f"{nodes} (Dropout, BatchNormalization) in training mode: {said}", "yellow")
    for recipe, names in found.misexported.items():
        yield Text(f"{words.listed(names, 3)} {SAID[recipe]}; see `{recipe}`", "yellow")
    if found.bare_kernels:
        count = words.count(found.bare_kernels, "convolution")
        said = "which some tools ask for; `stated-attributes` writes it"
        yield Text(f"{count} without `kernel_shape`, {said}", "dim")


def _of_loading(found: Inspection) -> Iterator[Text]:
    if any(file.size is None for file in found.external):
        yield Text("external data is missing: no runtime loads the model", "red")
    if found.loads is False:
        yield Text(f"onnxruntime does not load it: {words.clean(found.fault)}", style="red")
    elif not (found.foreign or found.computed_weights or found.bfloat16 or found.misfits):
        loads = "; onnxruntime loads it" if found.loads else ""
        yield Text(f"Only standard operators, no computed kernels{loads}.", style="green")
    if _fails_in_float64(found):
        values = words.count(
            found.float64, "input, constant or Cast", "inputs, constants and Casts"
        )
        more = "onnxruntime and most others compute little in it"
        yield Text(f"{values} in double precision: {more}", "yellow")


def _of_misfits(found: Inspection, *, verbose: bool) -> Iterator[RenderableType]:
    """Every node at fault, where onnxruntime names the first; and those that do nothing."""
    if found.misfits:
        most = len(found.misfits) if verbose else MOST_MISFITS
        table = Table.grid(padding=(0, 2))
        for each in found.misfits[:most]:
            name = Text(words.name(each.node), style="yellow")
            table.add_row(name, Text(words.name(each.operator)), Text(words.clean(each.what)))
        yield Text("nodes that cannot be so, as ONNX infers types and shapes:", "yellow")
        yield Padding(table, (0, 0, 0, 2))
        if (rest := len(found.misfits) - most) > 0:
            yield Text(f"and {rest:,} more: --verbose shows them", "dim")
    if found.unread:
        count = words.count(len(found.unread), "node leads", "nodes lead")
        said = words.listed(found.unread, 3)
        yield Text(f"{count} to no output ({said}): every recipe leaves such nodes out", "dim")


def _fails_in_float64(found: Inspection) -> bool:
    """Whether double precision may be why onnxruntime does not load it."""
    return found.loads is False and bool(found.float64) and not found.foreign


def _next_step(found: Inspection, *, verbose: bool) -> Text | None:
    if found.broken:
        return Text(f"no command takes it: {words.clean(found.broken)}", "yellow")
    last = "float64-in-float32 --allow approximate" if _fails_in_float64(found) else "aten"
    unlike = [each.operator for each in found.misfits if each.what.endswith(UNLIKE)]
    last = last if (mend := mend_of(found.fault, unlike)) is None else mend
    if found.opsets.get("ai.onnx", _RUN) < _RUN and not found.foreign:
        last = f"clean --opset {WIDELY_READ}"
    if best := _best(found) or (last if found.loads is False else None):
        path = shlex.quote(words.name(found.source))
        return words.command(f"Try: surgeon apply {best} {path} OUT.onnx")
    if "clean" in found.made or any(name.startswith("for-") for name in found.made):
        return Text(f"Made by surgeon with {words.listed(found.made)}: nothing to do", "dim")
    if not verbose:
        said = (
            "Try: surgeon apply clean ..., or by what is complained of: surgeon recipes which WORD"
        )
        return Text(said, "dim")
    if found.recipes:
        rules = (f"{name} ({words.count(n, 'rule')})" for name, n in found.recipes.items())
        return Text(f"Bundled recipes with rules for its operators: {', '.join(rules)}", "dim")
    return None


def _of_run_time(operators: Mapping[str, int]) -> Iterator[Text]:
    """What is decided by values at run time, which operators alone do not show to be refused."""
    for names, does, helps in (
        (
            _COUNTING,
            "sizes depend on values",
            "see `mask-forms`, or cut them off: `surgeon extract`",
        ),
        (_DECIDING, "what runs depends on values", "`surgeon explain clean` says what settles it"),
    ):
        if there := [f"{name} ({operators[name]:,})" for name in names if name in operators]:
            more = "which some runtimes refuse"
            yield Text(f"{words.listed(there)}: {does}, {more}; {helps}", "dim")


def _fit(fit: Fit) -> Iterator[RenderableType]:
    if fit.opset is not None and fit.opsets is not None:
        old, new = fit.opsets
        said = f"it reads opsets {old} to {new}, and the model is at {fit.opset}"
        if fit.nearest is not None and old <= fit.nearest <= new:
            said += f": `--target` takes it to {fit.nearest}"
        else:
            said += f", which is taken to {fit.nearest} at most: export the model anew for {new}"
        yield Text(said, "red")
    if fit.refused:
        table = Table.grid(padding=(0, 2))
        table.add_column(justify="right")
        for one in fit.refused:
            others = f"rules in {words.listed(one.recipes)}" if one.recipes else "no bundled rule"
            if one.operator in fit.folded:
                others = "of constants alone: any recipe folds it"
            if one.operator == "Identity":
                others = "any recipe drops it"
            text = Text(words.name(one.operator), style="yellow")
            table.add_row(f"{one.count:,}", text.append(f"  {others}", style="default"))
        yield Text("not on its list of operators:")
        yield table
    else:
        yield Text("Every operator is on its list.", style="green")
    if fit.beyond:
        yield Text("beyond its limits:")
        yield _beyond(fit)
    elif fit.limits:
        yield Text("Nothing is beyond its limits.", style="green")
    if fit.partly:
        yield Text(f"taken with limits that were not looked at: {words.listed(fit.partly, 30)}")
    silent = "more" if fit.limits else "types and attributes"
    yield Text(f"as {fit.source} says; of {silent} the list says nothing", "dim")
    if fit.command:
        said = " ".join(shlex.quote(words.name(part)) for part in fit.command)
        yield words.command(f"Try: {said}")
    if fit.spelled:
        yield Text(f"which has rules for {words.listed(fit.spelled, 30)}", "dim")
    for kind, operators in fit.waiting.items():
        options = f"--target {shlex.quote(words.name(fit.target))} --allow {kind}"
        yield Text(f"with {options} also for {words.listed(operators, 30)}", "dim")


def _beyond(fit: Fit) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    for one in fit.beyond:
        text = Text(words.name(one.operator), style="yellow")
        text.append(f"  {words.name(one.limit)}: {words.name(one.nodes[0])}", style="default")
        text.append(f", {words.name(one.reason)}", style="default")
        if one.recipes:
            text.append(f"; rules in {words.listed(one.recipes)}", style="default")
        table.add_row(f"{len(one.nodes):,}", text.append(f"  {one.location}", style="dim"))
    return table


def _foreign(foreign: Foreign) -> Text:
    text = Text(words.name(foreign.operator), style="yellow")
    spelled = words.listed(foreign.spelled)
    if spelled != words.name(foreign.operator):
        text.append(f"  spelled {spelled}", style="dim")
    runs = "onnxruntime knows it" if foreign.runs else "onnxruntime lacks it"
    helped = f"rules in {words.listed(foreign.recipes)}" if foreign.recipes else "no bundled rule"
    text.append(f"\n{runs}; {helped}", style="default")
    return text


def _best(found: Inspection) -> str | None:
    """The recipe with rules for most of the foreign nodes; of equals `aten`, or `contrib`."""
    scores: dict[str, int] = {}
    for foreign in found.foreign:
        for recipe in foreign.recipes:
            scores[recipe] = scores.get(recipe, 0) + foreign.count
    if not scores:
        return None
    first = ["contrib", "aten"]  # others change types beside
    if all("." not in foreign.operator for foreign in found.foreign):
        first.reverse()  # of ONNX's own, newer than the opset, `aten` mends types alone
    return max(
        scores,
        key=lambda n: (scores[n], first.index(n) if n in first else -1, found.recipes.get(n, 0), n),
    )
