"""What a recipe puts in front of a model's inputs or behind its outputs, in ONNX's own text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from surgeon.document import suggest
from surgeon.errors import Location, RecipeError
from surgeon.external import with_data
from surgeon.model import Model
from surgeon.parsed import of_parser

if TYPE_CHECKING:
    import onnx

IN_FRONT, BEHIND = "in-front", "behind"
_EXAMPLE = {
    IN_FRONT: "camera (uint8[n, h, w, 3] frame) => (float[n, 3, h, w] image) { ... }",
    BEHIND: "labels (scores) => (int64[n] label) { ... }",
}


class Extension(NamedTuple):
    """A graph that is joined to a model before any step.

    Attributes:
        place: `in-front`: what it gives is what inputs were; `behind`: it is given outputs.
        text: A graph in ONNX's text, or a model, which says of which opset it is.
        location: Where it stands.
        file: Another ONNX file in place of the text, as it is named from the recipe's folder.
        meets: Which end of it meets which of the model, where names are others.
        brings: Its further ends, which the whole has too.
    """

    place: str
    text: str
    location: Location
    file: str = ""
    meets: tuple[tuple[str, str], ...] = ()
    brings: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Where the file is."""
        return Path(self.location.file).parent / self.file

    @property
    def shown(self) -> str:
        """What is joined, for readers."""
        return f"the file {self.file}" if self.file else self.text.rstrip()

    def where(self, word: str) -> Location:
        """Where a word of the text first stands in the file; the text's begin where it does not."""
        found = re.search(rf"(?<![\w.]){re.escape(word)}(?!\w)", self.text)
        if found is None:
            return self.location
        before = self.text[: found.start()].splitlines() or [""]
        line, column = len(before), len(before[-1]) + 1
        return self.location.shifted(line, column + (self.location.column - 1) * (line > 1))


def parse_extension(extension: Extension) -> onnx.ModelProto:
    """The graph as a model; without imports where the text is a graph alone.

    Raises:
        RecipeError: The text is neither graph nor model, or does not say what it is given or gives.
    """
    import onnx.parser

    if extension.file:
        return _read(extension)
    text = extension.text.strip()
    try:
        if text.startswith("<"):
            model = onnx.parser.parse_model(text)
        else:
            model = onnx.ModelProto(graph=onnx.parser.parse_graph(text))
    except onnx.parser.ParseError as error:
        if text.endswith(".onnx") and len(text.splitlines()) == 1:
            mend = f"Write `{extension.place}: {{file: {text}}}`."
            raise _wrong(extension, "this is no graph of ONNX", mend) from None
        said = of_parser(error)[0].rpartition("; ")[2]
        raise _wrong(extension, f"this is no graph of ONNX: {said}") from None
    graph = model.graph
    if model.functions:
        raise _wrong(extension, "it brings functions", "Write out what they compute.")
    if not graph.input or not graph.output:
        raise _wrong(extension, "it is given nothing, or gives nothing")
    _check_names(extension, graph)
    for value in graph.input if extension.place == IN_FRONT else ():
        if not value.type.tensor_type.elem_type:
            raise _wrong(extension, f"it does not say of what type `{value.name}` is")
    return model


def _read(extension: Extension) -> onnx.ModelProto:
    """The file, whole: with its data, without its functions, and weights are no inputs."""
    from onnx import inliner

    read = Model.load(extension.path)
    model = with_data(read.proto, read.folder or extension.path.parent)
    if model.functions:
        model = inliner.inline_local_functions(model)
    graph = model.graph
    constants = {tensor.name for tensor in graph.initializer}
    given = [value for value in graph.input if value.name not in constants]
    del graph.input[:]
    graph.input.extend(given)
    if not graph.input or not graph.output:
        raise _wrong(extension, f"`{extension.file}` is given nothing, or gives nothing")
    return model


def _check_names(extension: Extension, graph: onnx.GraphProto) -> None:
    """Every value that is read, or given, is made before it is."""
    made = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        for name in node.input:
            if name and name not in made:
                here = sorted(made)
                what = f"nothing makes `{name}` before {node.op_type} reads it"
                raise _wrong(extension, what, suggest(name, here), name)
        made.update(node.output)
    for value in graph.output:
        if value.name not in made:
            what = f"it says that it gives `{value.name}`, which nothing in it computes"
            raise _wrong(extension, what, suggest(value.name, sorted(made)), value.name)


def _wrong(extension: Extension, what: str, mend: str = "", word: str = "") -> RecipeError:
    where = extension.where(word) if word else extension.location
    return RecipeError(what, where=where, mend=mend or f"Write `{_EXAMPLE[extension.place]}`.")


def is_other(value: onnx.ValueInfoProto) -> bool:
    """Whether a value is said to be no tensor: a sequence, say."""
    return value.type.WhichOneof("value") not in (None, "tensor_type")


def type_of(value: onnx.ValueInfoProto) -> str:
    """A value's type as ONNX writes it."""
    from onnx import TensorProto

    if is_other(value):
        kind = str(value.type.WhichOneof("value"))
        return f"a {kind.removesuffix('_type')}"
    tensor = value.type.tensor_type
    kind = TensorProto.DataType.Name(tensor.elem_type).lower()
    if not tensor.HasField("shape"):
        return f"{kind} of unknown shape"
    dims = (
        str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?"
        for dim in tensor.shape.dim
    )
    return f"{kind}[{', '.join(dims)}]"
