"""The architecture as a test: floors, doors to other people's code, and an independent witness.

A *room* is a module of surgeon/ or a package of it, which counts as one. A room imports only from
lower floors. Inside a package modules may import one another, but never in a circle.
"""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "surgeon"

FLOORS: list[set[str]] = [  # a room imports only rooms of earlier rows, none of its own row
    {"wording"},
    {
        "errors",
        "provenance",
        "collector",
        "declared",
        "numerals",
        "suited",
        "clock",
        "standard",
        "parsed",
    },
    {"arranged", "reading", "leftovers"},
    {
        "stored",
        "spelling",
        "nested",
        "files",
        "objects",
        "messages",
        "links",
        "capacity",
        "alike",
        "producer",
        "frozen",
        "returned",
    },
    {"blocks", "customops", "misexported", "ortvalues"},
    {"mistaken", "packing"},
    {
        "worker",
        "workers",
        "writer",
        "soundness",
        "external",
        "wire",
        "meanings",
        "renaming",
    },
    {"importer", "watch", "weights", "sealing", "aside", "tensors", "ends"},
    {"model", "dims", "document", "schemas"},
    {"assumed"},
    {
        "extension",
        "notation",
        "opsets",
        "assumptions",
        "values",
        "deciding",
        "chance",
        "choices",
        "departed",
    },
    {"facts", "difference", "listing"},
    {"dialect", "functions", "edges", "sizenames", "sparing"},
    {"expressions", "runtime"},
    {"isolation"},
    {"match", "fold", "captured", "older", "sameness", "inferring"},
    {"wordy", "typed"},
    {"rewrite", "reference", "inputs", "searching", "oddities"},
    {"template", "housekeeping", "claims", "arguments", "lost", "copies", "direct"},
    {"matching"},
    {"bodies"},
    {"builders"},
    {"verify"},
    {"report"},
    {"recipe"},
    {"candidates", "targets"},
    {"firing"},
    {"evidence"},
    {"trial"},
    {"sweep", "culprits", "anybatch"},
    {"tally", "anysize", "helpful"},
    {"steps"},
    {"walk"},
    {"authoring", "changing", "faults", "joining", "limits"},
    {"refusing", "operation", "extending", "auditing"},
    {"fitting", "opening", "comparing", "misfits"},
    {"advice", "mending", "planning"},
    {"surgery", "export", "doctor", "inspection"},
    {"cases", "batch", "explaining", "extraction", "pairwise"},
    {"language", "sketching", "skeleton", "complaints", "standing", "reducing", "dividing"},
    {"adapting"},
    {"answers"},
    {"render", "handbook"},
    {"cli"},
    {"surgeon", "__main__"},  # the face: surgeon/__init__.py
]
FLOOR = {room: height for height, rooms in enumerate(FLOORS) for room in rooms}

DOORS: dict[str, set[str]] = {  # other people's code: the only rooms that may import it
    "onnxruntime": {"runtime", "schemas"},  # the latter where it writes its lists
    "onnxsim": {"steps"},
    "onnx_graphsurgeon": {  # the graph itself; the recipe's side never sees it
        "model", "facts", "dialect", "functions", "opsets", "match", "matching", "fold", "rewrite",
        "template", "builders", "housekeeping", "firing", "sweep", "trial", "bodies",
        "arguments", "captured", "writer", "links", "alike", "older",
        "searching", "wordy", "candidates", "importer", "objects", "copies",
        "sameness", "direct", "walk", "limits", "typed", "opening", "sparing", "departed",
        "changing", "anysize", "sketching",
    },
    "torch": {"export", "reference", "schemas"},
    "yaml": {"document"},
    "lark": {"notation"},
    "pydantic": {"document", "recipe", "report", "cases"},
    "typer": {"cli"},
    "rich": {"cli", "render"},
    "multiprocessing": set(),  # breaks in scripts without a main guard, and inside daemons
    "pickle": {"messages", "worker"},  # between surgeon and its own child; models are strangers'
    "onnx_shape_inference": set(),  # the tests' oracle
    "sympy": set(),
}  # fmt: skip

WITNESS = "reference"
REWRITING = {"rewrite", "builders", "dialect", "facts", "dims"}

TALKERS = {"cli", "render", "worker", "__main__"}  # the core returns data and prints nothing

FILES = sorted(PACKAGE.rglob("*.py"))


def module_of(path: Path) -> str:
    """`surgeon/facts/shapes.py` is `surgeon.facts.shapes`; an `__init__.py` is its package."""
    parts = ["surgeon", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else module


MODULES = {module_of(path) for path in FILES}


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """The nodes of a file's syntax that the tests look at."""
    kinds = ast.Import | ast.ImportFrom | ast.Call
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tuple(node for node in ast.walk(tree) if isinstance(node, kinds))


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything imported, inside functions and for type checkers too."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                here = module_of(path).split(".")
                above = len(here) - node.level + (path.name == "__init__.py")
                source = ".".join([*here[:above], *([source] if source else [])])
            for alias in node.names:
                inner = f"{source}.{alias.name}"
                yield node.lineno, inner if inner in MODULES else source


def is_ours(module: str) -> bool:
    return module.split(".")[0] == "surgeon"


def test_every_room_stands_on_a_floor() -> None:
    rooms = {room_of(module) for module in MODULES} - FLOOR.keys()
    assert not rooms, f"on no floor: enter them in FLOORS of tests/test_layers.py: {rooms}"


def test_every_import_goes_down() -> None:
    wrong = []
    for path in FILES:
        above = room_of(module_of(path))
        for line, module in imports_of(path):
            below = room_of(module)
            if is_ours(module) and below != above and FLOOR[below] >= FLOOR[above]:
                floors = f"floor {FLOOR[above]} imports {below} of floor {FLOOR[below]}"
                wrong.append(f"{path}:{line}: {above} of {floors}")
    assert not wrong, "imports only go down:\n" + "\n".join(wrong)


def test_no_package_holds_a_circle() -> None:
    graph = {
        module_of(path): {
            module
            for _, module in imports_of(path)
            if module in MODULES and module != module_of(path)
        }
        for path in FILES
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("modules import one another in a circle: " + " -> ".join(error.args[1]))


def test_foreign_code_comes_in_by_its_door() -> None:
    wrong = []
    for path in FILES:
        room = room_of(module_of(path))
        for line, module in imports_of(path):
            doors = DOORS.get(module.split(".")[0])
            if doors is not None and room not in doors:
                may = f"only {', '.join(sorted(doors)) or 'nobody'} may"
                wrong.append(f"{path}:{line}: {room} imports {module}; {may}")
    assert not wrong, "DOORS of tests/test_layers.py:\n" + "\n".join(wrong)


def test_the_witness_and_the_rewriting_code_do_not_know_each_other() -> None:
    used: dict[str, set[str]] = {}
    for path in FILES:
        rooms = {room_of(module) for _, module in imports_of(path) if is_ours(module)}
        used.setdefault(room_of(module_of(path)), set()).update(rooms)
    assert not used[WITNESS] & REWRITING, "the witness must not share code with what rewrites"
    for room in REWRITING:
        assert WITNESS not in used[room], f"{room} must not share code with the witness"


def test_the_core_prints_nothing_and_evaluates_no_text() -> None:
    wrong = []
    for path in FILES:
        banned = {"eval", "exec"} | (set() if room_of(module_of(path)) in TALKERS else {"print"})
        for node in nodes_of(path):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Name) and called.id in banned:
                wrong.append(f"{path}:{called.lineno}: calls {called.id}")
    assert not wrong, "\n".join(wrong)


def test_no_room_is_on_two_floors() -> None:
    assert len(FLOOR) == sum(len(rooms) for rooms in FLOORS)
