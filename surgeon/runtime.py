"""Owns every call of onnxruntime: sessions on the CPU, with nothing optimised unless asked.

Two models are compared, not two optimisers. onnxruntime is imported at the first session.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import onnx

from surgeon import blocks, customops
from surgeon.customops import LibraryError
from surgeon.errors import ModelError, SurgeonError
from surgeon.external import bytes_outside, with_small_data
from surgeon.nested import every_node
from surgeon.numerals import natural
from surgeon.ortvalues import NARROW, NUMPY, array_of, element, table_of
from surgeon.spelling import lacked

THREADS = 2  # of one operator in a model of any size
_SMALL = 1 << 20  # bytes of a model whose threads would take longer to start than it does to run
EXTERNAL_FOLDER = "session.model_external_initializers_file_folder_path"

# onnxruntime 1.31 ends the process where one of these is given no step or row, rows of nothing, or
# planes of nothing (of halves no plane either); for Unique where it has an axis.
_DEADLY_WITHOUT_ELEMENTS = {
    **{"GRU": "", "LSTM": "", "DynamicQuantizeLSTM": "", "QAttention": "", "Unique": "axis"},
    "FeatureVectorizer": "",  # divides by the number of rows
}
_DEADLY_WITHOUT_PLANES = "InstanceNormalization"
# Einsum divides by the length of an axis, and ConvTranspose over three axes writes to none; TopK
# shared its rows out, where there might be none.
_BLIND = frozenset({"Einsum", "ConvTranspose"})
_BLIND_BEFORE_1_31 = _BLIND | {"TopK"}
# Whose run never ends where its second operand, the kernel, has no elements and its first has some.
ENDLESS = frozenset({"Conv", "FusedConv"})

Feeds = Mapping[str, Any]  # by value name: an array, or a list of arrays for a sequence


class OnnxruntimeError(SurgeonError):
    """onnxruntime refused a model or a run of it.

    Attributes:
        text: What it said.
        lacking: Whether the model may be right, and onnxruntime lacks what it asks for.
    """

    exit_code = 3

    def __init__(self, what: str, *, where: str, mend: str, text: str, lacking: bool) -> None:
        super().__init__(what, where=where, mend=mend)
        self.text, self.lacking = text, lacking


class NotRunnable(OnnxruntimeError):
    """The model does not load. `operators` are those onnxruntime does not have, as `domain.Op`."""

    def __init__(
        self, *, where: str, text: str, operators: Sequence[str], lacking: bool = False
    ) -> None:
        said = f"onnxruntime has no {lacked(operators)}", "Replace these operators."
        if not operators:
            said = f"the model does not load: {text}", "Mend what onnxruntime complains about."
        what, mend = said
        lacking = lacking or bool(operators)
        super().__init__(what, where=where, mend=mend, text=text, lacking=lacking)
        self.operators = tuple(operators)


class RunFailed(OnnxruntimeError):
    """The model loads, and this run of it fails."""

    def __init__(self, *, where: str, text: str, lacking: bool = False) -> None:
        super().__init__(
            f"the run fails: {text}",
            where=where,
            mend="Try other inputs.",
            text=text,
            lacking=lacking,
        )


class Port(NamedTuple):
    """An input or output of a session.

    Attributes:
        name: The value's name.
        type: In onnxruntime's words, `tensor(float)` say.
        shape: As declared: numbers, names, or None where nothing is said.
    """

    name: str
    type: str
    shape: tuple[int | str | None, ...]


class Runner(Protocol):
    """What runs a model: a session, or whatever stands in for one."""

    def run(self, feeds: Feeds, outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """The named outputs (all, by default) on these inputs."""


class Session:
    """An onnxruntime session on the CPU: silent, deterministic, unoptimised by default.

    Args:
        model: A model, or the path of one.
        optimise: Let onnxruntime apply its own optimisations.
        folder: Where the external data of a `ModelProto` lie.

    Raises:
        NotRunnable: The model does not load.
    """

    def __init__(
        self,
        model: onnx.ModelProto | Path,
        *,
        optimise: bool = False,
        folder: Path | None = None,
    ) -> None:
        self._where = str(model) if isinstance(model, Path) else f"graph `{model.graph.name}`"
        nodes = [*every_node(model.graph.node)] if isinstance(model, onnx.ModelProto) else []
        self._deadly = any(map(_is_deadly, nodes))
        self._wants_planes = any(node.op_type == _DEADLY_WITHOUT_PLANES for node in nodes)
        if isinstance(model, onnx.ModelProto) and blocks.has_blocks(model):
            _check_blocks(model, folder, self._where)
        try:
            self._session = _loaded(model, folder, optimise=optimise)
        except LibraryError:
            raise
        except Exception as error:  # its exception classes share no base of their own
            raise _not_runnable(model, error, self._where) from None
        self.inputs = tuple(_port(value) for value in self._session.get_inputs())
        self.outputs = tuple(_port(value) for value in self._session.get_outputs())
        ports = (*self.inputs, *self.outputs)
        self._plain = all(element(port.type) in NUMPY for port in ports)
        self._names = tuple(port.name for port in self.outputs)

    def run(self, feeds: Feeds, outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """The named outputs (all, by default): arrays, or lists of arrays for sequences.

        Raises:
            RunFailed: onnxruntime refuses these inputs, or an operator fails on them.
        """
        names = list(self._names if outputs is None else outputs)
        empty = [v for v in feeds.values() if hasattr(v, "shape") and 0 in np.shape(v)]
        flat = [v for v in empty if v.dtype == np.float16 or 0 in np.shape(v)[1:]]
        if (self._wants_planes and flat) or (self._deadly and empty):
            raise RunFailed(
                where=self._where,
                text="onnxruntime has no steps, rows or planes of nothing, and would end",
                lacking=True,
            )
        try:
            found = (
                self._session.run(names, dict(feeds))
                if self._plain
                else self._run_narrow(names, feeds)
            )
        except Exception as error:
            raise RunFailed(
                where=self._where, text=_tidy(str(error)), lacking=_is_lack(error)
            ) from None
        return dict(zip(names, map(table_of, found), strict=True))

    def _run_narrow(self, names: list[str], feeds: Feeds) -> list[Any]:
        """As `run`, where a dtype is not numpy's own: bfloat16 and the float8 kinds."""
        import onnxruntime as ort

        types = {port.name: port.type for port in self.inputs}
        values = {}
        for name, array in feeds.items():
            if isinstance(array, np.ndarray) and element(types.get(name, "")) not in NUMPY:
                number = NARROW[element(types[name])]
                make = ort.OrtValue.ortvalue_from_numpy_with_onnx_type
                values[name] = make(np.asarray(array, order="C"), number)
            else:
                values[name] = ort.OrtValue.ortvalue_from_numpy(np.asarray(array))
        return [array_of(value) for value in self._session.run_with_ort_values(names, values)]


@cache
def blind(release: str) -> frozenset[str]:
    """The operators that end the process of this release of onnxruntime on no elements."""
    from packaging.version import Version  # as `release`: most runs ask for neither

    return _BLIND_BEFORE_1_31 if Version(release) < Version("1.31") else _BLIND


@cache
def release() -> str:
    """Which onnxruntime is installed, known without importing it."""
    from importlib import metadata

    try:
        return metadata.version("onnxruntime")
    except metadata.PackageNotFoundError:  # one that was built under another name
        return "1.31"


@cache
def block_here() -> int | None:
    """How many channels onnxruntime has in a block on this machine; None where it has none."""
    node = onnx.helper.make_node("ReorderInput", ["x"], ["y"], domain=blocks.DOMAIN)
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 4, 1, 1])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid(blocks.DOMAIN, 1)]
    graph = onnx.helper.make_graph([node], "blocks", [x], [y])
    model = onnx.helper.make_model(graph, ir_version=8, opset_imports=opsets)
    try:
        found = _loaded(model, None, optimise=False).run(None, {"x": np.zeros((1, 4, 1, 1), "f")})
    except Exception:  # its exception classes share no base of their own
        return None
    size = found[0].shape[1]
    return size if size in (blocks.SMALL, blocks.LARGE) else None


def _check_blocks(model: onnx.ModelProto, folder: Path | None, where: str) -> None:
    """See that blocks of channels have the size that they have on this machine.

    Raises:
        NotRunnable: They do not, so that onnxruntime would compute something else.
    """
    told, here = blocks.told(model, folder), block_here()
    if here is None or told not in (None, here):
        nodes = every_node(model.graph.node)
        names = dict.fromkeys(f"{n.domain}.{n.op_type}" for n in nodes if n.domain == blocks.DOMAIN)
        if names:
            text = (
                f"its channels stand in blocks of {told}, and here they stand in blocks of {here}"
            )
            raise NotRunnable(where=where, text=text, operators=[*names], lacking=True)


def _is_deadly(node: onnx.NodeProto) -> bool:
    asked = _DEADLY_WITHOUT_ELEMENTS.get(node.op_type)
    return asked == "" or any(attribute.name == asked for attribute in node.attribute)


def _loaded(model: onnx.ModelProto | Path, folder: Path | None, *, optimise: bool) -> Any:
    """A session of onnxruntime's own, which wants axes, pads and sizes in the file itself."""
    import onnxruntime as ort

    # protobuf counts bytes by writing them: once is enough
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    size = None if isinstance(source, str) else len(source)
    if size is not None and size < _SMALL and isinstance(model, onnx.ModelProto):
        size += bytes_outside(model)
    options = _options(size, optimise=optimise, folder=folder)
    try:
        return ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception:
        inside = model
        if isinstance(model, onnx.ModelProto):
            with suppress(ModelError):  # no such data: onnxruntime says it better
                inside = with_small_data(model, folder)
        if inside is model:
            raise
    return _loaded(inside, folder, optimise=optimise)


def _options(size: int | None, *, optimise: bool, folder: Path | None) -> Any:
    """How a model of so many bytes runs; None for one that lies in a file."""
    import onnxruntime as ort

    small = size is not None and size < _SMALL
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1 if small else _threads()
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = not small  # it asks for twice what a few runs need
    options.enable_mem_reuse = False  # the plan of it takes the square of the number of nodes
    options.use_deterministic_compute = True
    if not small and not optimise:  # weights stay where they are: a few runs gain nothing by a copy
        options.add_session_config_entry("session.disable_prepacking", "1")
    for library in customops.libraries():
        customops.register(options, library)
    # The witness holds many sessions: their idle threads must not spin (7 times as slow).
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimise else level.ORT_DISABLE_ALL
    if folder is not None:
        options.add_session_config_entry(EXTERNAL_FOLDER, str(folder))
    return options


def see_library(library: str) -> None:
    """See that onnxruntime loads a library of custom operators.

    Raises:
        LibraryError: It does not.
    """
    import onnxruntime as ort

    customops.register(ort.SessionOptions(), library)


def _threads() -> int:
    return natural(os.environ.get("OMP_NUM_THREADS", "")) or THREADS


def without_schema(model: onnx.ModelProto) -> tuple[str, ...]:
    """The operators of a model that onnxruntime itself has no schema for, as `domain.Op`."""
    known = _known_operators()
    functions = {(function.domain, function.name) for function in model.functions}
    nodes = [*every_node(model.graph.node)]
    for function in model.functions:
        nodes.extend(every_node(function.node))
    found: dict[str, None] = {}
    for node in nodes:
        domain = "" if node.domain == "ai.onnx" else node.domain
        if (domain, node.op_type) not in known and (node.domain, node.op_type) not in functions:
            found[f"{domain or 'ai.onnx'}.{node.op_type}"] = None
    return tuple(found)


def not_held(operators: Sequence[str]) -> tuple[str, ...]:
    """Those of these operators (`domain.Op`) that no library of custom operators holds."""
    libraries = customops.libraries()
    return tuple(name for name in operators if not (libraries and _is_held(name, libraries)))


@lru_cache(maxsize=256)
def _is_held(operator: str, libraries: tuple[str, ...]) -> bool:
    """Whether onnxruntime knows the operator of these libraries: what it says of a node of it.

    It has no list of them. Whatever else is wrong with the node, it is looked up first.
    """
    domain, _, name = operator.rpartition(".")
    domain = "" if domain == "ai.onnx" else domain
    x, y = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in "xy")
    node = onnx.helper.make_node(name, ["x"], ["y"], domain=domain)
    opsets = [onnx.helper.make_opsetid(d, v) for d, v in {"": 17, domain: 1}.items() if d or v > 1]
    graph = onnx.helper.make_graph([node], "held", [x], [y])
    model = onnx.helper.make_model(graph, ir_version=8, opset_imports=opsets)
    try:
        _loaded(model, None, optimise=False)
    except LibraryError:
        raise
    except Exception as error:  # its exception classes share no base of their own
        return "is not a registered function/op" not in str(error)
    return True


@lru_cache(maxsize=1)
def _known_operators() -> frozenset[tuple[str, str]]:
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    return frozenset((schema.domain, schema.name) for schema in state.get_all_operator_schema())


# What kernels say that take only a part of what the operator's definition allows: they have no
# status of its own for it.
_LACK = re.compile(r"[Uu]nsupported|only supports?\b|not (yet )?(supported|implemented)")


def _is_lack(error: Exception) -> bool:
    """Whether onnxruntime says that it cannot do it, and not that it makes no sense."""
    return type(error).__name__ == "NotImplemented" or bool(_LACK.search(str(error)))


def _not_runnable(model: onnx.ModelProto | Path, error: Exception, where: str) -> NotRunnable:
    text, lacking = str(error), _is_lack(error)
    if isinstance(model, Path):
        try:
            model = onnx.load(model, load_external_data=False)
        except Exception:  # onnxruntime's own words say what is wrong with the file
            return NotRunnable(where=where, text=_tidy(text), operators=(), lacking=lacking)
    operators = not_held(without_schema(model))
    kernel = re.search(r"Could not find an implementation for ([\w.:]+?)\(\d+\)", text)
    if not operators and kernel:
        domain, _, name = kernel[1].rpartition(":" if ":" in kernel[1] else ".")
        homes = {node.domain for node in every_node(model.graph.node) if node.op_type == name}
        if not domain and len(homes) == 1:  # of its own domain onnxruntime gives the name alone
            (domain,) = homes
        operators = (f"{domain or 'ai.onnx'}.{name}",)
    return NotRunnable(where=where, text=_tidy(text), operators=operators, lacking=lacking)


def _tidy(text: str) -> str:
    """The text of onnxruntime without its number and the paths of its own source files."""
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", text.strip())
    text = text.replace("std::bad_alloc", "failed to allocate memory")
    return re.sub(r"\s+", " ", re.sub(r"/onnxruntime_src/\S+ ", "", text))


def _port(value: Any) -> Port:
    return Port(value.name, value.type, tuple(value.shape or ()))
