"""A fuzzer steered by coverage: whatever comes in, out comes a result or a `SurgeonError`.

    python tests/fuzz.py models|patterns|expressions|recipes [FOLDER] [-max_total_time=60 ...]

FOLDER keeps the inputs that reach new code; the rest are libFuzzer's options. Needs atheris, which
is in no group of dependencies: `make fuzz` has an environment of its own for it. What it finds is
written to `crash-*` and becomes a test of `test_hostile*.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import atheris
import onnx.parser

with atheris.instrument_imports(include=["surgeon", "lark"]):
    import surgeon.surgery
    from surgeon.errors import Location, SurgeonError
    from surgeon.expressions import Expression, truth, why_not
    from surgeon.isolation import isolation
    from surgeon.model import Model
    from surgeon.notation.pattern import print_pattern
    from surgeon.notation.syntax import parse_pattern, parse_replacement
    from surgeon.recipe import Recipe
    from surgeon.wire import parse

ROOT = Path(__file__).parent.parent
PLACE = Location("<fuzz>")
SCOPE = {"n": 4, "text": "abc", "items": [1, 2, 3], "nothing": None}


def models(data: bytes) -> None:
    """A file as it is read, repaired and written."""
    model = Model(parse(data, where="<fuzz>"))
    surgeon.surgery.apply(model, RECIPES[0], verify=False).model.to_proto().SerializeToString()


def patterns(data: bytes) -> None:
    """A pattern, and a replacement."""
    text = data.decode(errors="replace")
    for read in (parse_pattern, parse_replacement):
        try:
            read(text, PLACE)
        except SurgeonError:
            continue


def expressions(data: bytes) -> None:
    """A condition, read and decided."""
    expression = Expression.parse(data.decode(errors="replace"), PLACE)
    if not truth(expression, SCOPE):
        why_not(expression, SCOPE)


def recipes(data: bytes) -> None:
    """A recipe's text."""
    Recipe.parse(data.decode(errors="replace"))


HEAD = '<ir_version: 8, opset_import: ["": 17, "own": 1, "org.pytorch.aten": 1]>'
MODELS = (
    f"""{HEAD} net (float[n,4] x, bool go) => (float[n,4] y, float[n,4] z)
    <float[4] w = {{0, 1, 2, 3}}, float[1] zero = {{0}}> {{
        a = Neg(x) b = Neg(a) c = Mul(b, w) y = Add(c, zero)
        d = If (go) <then_branch = yes () => (float[n,4] t) {{ t = Neg(c) }},
                     else_branch = no () => (float[n,4] e) {{ e = Sin(c) }}>
        z = own.twice(d) }}
    <domain: "own", opset_import: ["": 17]> twice (p) => (q) {{ q = Add(p, p) }}""",
    f"""{HEAD} net (float[n,3,8,8] x) => (float[m] y)
    <float[2,3,1,1] w = {{1, 2, 3, 4, 5, 6}}, int64[1] one = {{1}}, int64[1] end = {{-1}}> {{
        p = Pad <mode = "constant"> (x, pads) c = Conv <pads = [0, 1, 2, 3]> (p, w)
        pads = Constant <value_ints = [0, 0, 1, 1, 0, 0, 1, 1]> ()
        s = Shape(c) g = Gather <axis = 0> (s, one) r = Concat <axis = 0> (g, end)
        v = Reshape(c, r) t = Transpose <perm = [1, 0]> (v) k = Slice(t, one, end)
        y = ReduceMean <axes = [0], keepdims = 0> (k) }}""",
    f"""{HEAD} net (float[b,4] x) => (float[b,2] y) <int64[2] size = {{1, 2}}> {{
        a = org.pytorch.aten.ATen <operator = "gelu"> (x)
        u = Unsqueeze(a, axes) axes = Constant <value_ints = [1]> ()
        p = org.pytorch.aten.ATen <operator = "adaptive_avg_pool2d"> (u, size)
        y = Squeeze(p, axes) }}""",
    f"""{HEAD} net (int64 n, float[4] x) => (float[4] y) {{
        yes = Constant <value_int = 1> () go = Cast <to = 9> (yes)
        y = Loop (n, go, x) <body = again (int64 i, bool c, float[4] s)
            => (bool d, float[4] t) {{ d = Identity(c) t = Add(s, s) }}> }}""",
)
TARGETS: dict[str, Callable[[bytes], None]] = {
    each.__name__: each for each in (models, patterns, expressions, recipes)
}
RECIPES: list[Recipe] = []


def seeds(target: str) -> list[bytes]:
    """What the fuzzer begins with."""
    files = sorted((ROOT / "recipes").glob("*.yaml"))
    if target == "models":
        return [onnx.parser.parse_model(text).SerializeToString() for text in MODELS]
    if target == "recipes":
        return [path.read_bytes() for path in files if ".cases." not in path.name][:40]
    rules = [
        rule for path in files if ".cases." not in path.name for rule in Recipe.load(path).rules
    ]
    if target == "patterns":
        return [print_pattern(rule.match).encode() for rule in rules[:200]]
    return [condition.text.encode() for rule in rules[:200] for condition in rule.where]


def main() -> None:
    """Run one target."""
    name, *options = sys.argv[1:]
    target = TARGETS[name]
    RECIPES.append(Recipe.load("clean"))
    if options and not options[0].startswith("-"):
        folder = Path(options[0])
        folder.mkdir(parents=True, exist_ok=True)
        for index, seed in enumerate(seeds(name)):
            (folder / f"seed-{index}").write_bytes(seed)

    def one(data: bytes) -> None:
        try:
            target(data)
        except SurgeonError:
            return

    with isolation(timeout=10, memory=4 << 30):
        atheris.Setup([sys.argv[0], *options], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
