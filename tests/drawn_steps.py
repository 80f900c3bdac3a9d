"""Graphs of whole numbers, truths, levels, other floats and bodies, drawn step by step.

Every step is run as it is drawn, at each of the sizes: what does not run there is drawn anew.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from truth import parse

from surgeon.runtime import NotRunnable, RunFailed, Session

Array = np.ndarray[Any, Any]

# In a step `@` is its result, `@a` a value of its own, `$i` a value of a type, `%i` another one,
# `#` one of any type, and `&` the same once more. In front of a colon stands the type of the
# result, where numpy has it not.
TYPES = {
    "f": "float",
    "d": "double",
    "h": "float16",
    "i": "int64",
    "k": "int32",
    "u": "uint8",
    "s": "int8",
    "b": "bool",
    "t": "string",
}
KEYS = {np.dtype({"float": "float32", "string": "O"}.get(n, n)): key for key, n in TYPES.items()}
NARROW = {"n": 16, "e": 17, "w": 19, "q": 22, "y": 21}  # by what ONNX calls these types
INPUTS = {"x": "f[a,n,4]", "i": "i[a,n]", "k": "k[n]", "u": "u[a,4]", "s": "s[4]", "m": "b[a,n]"}
WORDS = {"t": "t[a]", "r": "t[n]"}
SIZES = ({"a": 2, "n": 3}, {"a": 3, "n": 1}, {"a": 1, "n": 4})
CONSTANTS = """
int64 i0 = {0}, int64 i2 = {2}, int64 im3 = {-3}, int64[1] l0 = {0}, int64[1] l1 = {1},
int64[1] l2 = {2}, int64[1] lm = {-1}, int64[1] far = {9223372036854775807},
int64[2] flat = {0, -1}, int64[3] row = {2, -1, 3}, int64[2] both = {0, 1}, int64[1,1] at = {0},
int32 k3 = {3}, uint8 u1 = {1}, uint8 u3 = {3}, uint8 u7 = {7}, int8 s2 = {2}, int8 s0 = {0},
bool yes = {1}, bool no = {0}, float fh = {0.5}, float ft = {2}, float[4] fl = {1, -0.5, 0.25, 2},
float[4,4] fq = {1, 2, 3, 4, 0.5, -1, -2, 0, 1, 1, 0, 0, -0.5, 2, 0.25, 1},
int64[3] three = {0, 1, -1}, int64[6] six = {1, 1, -1, 1, 1, 1},
int64[8] eight = {2, 1, 1, 1, -1, 1, 1, 1}, int64[4] heads = {0, -1, 2, 2},
int8[4,3] levels = {1, -2, 3, 4, 5, -6, 7, 8, 0, -1, 2, 3}, float[3] scales = {0.5, 0.25, 2}
"""

VIEWS = """
@ = Reshape (#, lm) | @ = Reshape (#, flat) | @ = Unsqueeze (#, l0) | @ = Unsqueeze (#, lm)
@ = Transpose (#) | @ = Squeeze (#, lm) | @ = Concat <axis = 0> (#, &) | @ = Identity (#)
@ = Concat <axis = -1> (#, &) | @ = Slice (#, l1, far, l0) | @ = Slice (#, l0, lm, lm)
@ = Flatten <axis = 1> (#) | @ = Gather <axis = 0> (#, i0) | @ = Expand (#, row)
@s = Shape (#) @ = Reshape (&, @s) | @s = Shape (#) @ = ReduceProd <keepdims = 1> (@s)
@s = Shape (#) @p = Slice (@s, l0, l1) @q = Concat <axis = 0> (@p, lm) @ = Reshape (&, @q)
"""
NUMBERS = """
@ = Add ($i, %i) | @ = Sub ($i, i2) | @ = Mul ($i, im3) | @ = Div ($i, im3) | @ = Div ($i, i2)
@ = Mod ($i, im3) | @ = Mod <fmod = 1> ($i, im3) | @ = Max ($i, i0) | @ = Min ($i, %i)
@ = Abs ($i) | @ = Neg ($k) | @ = Mul ($k, k3) | @ = Div ($k, k3) | @ = Mod ($s, s2)
@ = Sign ($i) | @ = BitShift <direction = "LEFT"> ($u, u1) | @ = ReduceMax <keepdims = 0> ($i)
@ = BitShift <direction = "RIGHT"> ($u, u1) | @ = Where ($b, $i, i2) | @ = Where ($b, #, &)
@ = Where ($b, i0, $i) | @ = Cast <to = 7> ($b) | @ = Cast <to = 6> ($i) | @ = Cast <to = 7> ($k)
@ = Cast <to = 1> ($i) | @ = Cast <to = 9> ($i) | @ = Cast <to = 1> ($b) | @ = Cast <to = 7> ($f)
@ = Equal ($i, %i) | @ = Less ($i, i0) | @ = GreaterOrEqual ($i, i0) | @ = Greater ($f, fh)
@ = And ($b, %b) | @ = Or ($b, yes) | @ = And (no, $b) | @ = Xor ($b, %b) | @ = Not ($b)
@ = ArgMax <axis = 0> (#) | @ = ArgMin <keepdims = 0, select_last_index = 1> (#)
@v, @ = TopK <axis = 0> (#, l1) | @, @i = TopK <largest = 0> (#, l2) | @ = NonZero (#)
@ = CumSum <reverse = 1> (#, i0) | @r = Abs ($i) @m = Mod (@r, i2) @ = Gather (#, @m)
@n = NonZero (#) @t = Transpose (@n) @ = GatherND (&, @t) | @ = Gather ($k, $i)
@ = ScatterElements <reduction = "add"> ($i, lm, i2) | @ = GatherND (#, at)
@s = Shape (#) @g = Gather (@s, i0) @ = Range (i0, @g, i2) | @s = Shape (#) @ = Gather (@s, i0)
@s = Shape (#) @ = ConstantOfShape (@s) | @s = Size (#) @d = Div (@s, i2) @ = Add (@d, $i)
@ = ReduceSum <keepdims = 0> (#, lm) | @ = OneHot ($i, i2, both) | @ = Mod ($k, k3)
"""
FLOATS = """
@ = Add ($f, %f) | @ = Mul ($f, fh) | @ = Sub (ft, $f) | @ = Div ($f, ft) | @ = Pow ($f, i2)
@ = Relu ($f) | @ = Sigmoid ($f) | @ = Clip ($f, , ft) | @ = Neg ($f) | @ = Add ($f, fl)
@ = MatMul ($f, fq) | @ = Softmax <axis = -1> ($f) | @ = ReduceMean <keepdims = 0> ($f)
@ = Abs ($f) | @ = Erf ($f) | @ = Max ($f, %f) | @ = Mul (fl, $f) | @e = Expand ($f, row)
@e = Expand ($f, row) @ = MatMul (@e, fq) | @e = Expand ($f, row) @ = Add (@e, %f)
"""
LEVELS = """
@ = QuantizeLinear ($f, fh, u3) | @q = QuantizeLinear ($f, ft) @ = DequantizeLinear (@q, fh)
@q = QuantizeLinear ($f, fh, s2) @ = DequantizeLinear (@q, fh, s2)
@q = QuantizeLinear ($f, fh, u3) @ = DequantizeLinear (@q, fh, u3)
@q = QuantizeLinear ($f, fh, u3) @r = Transpose (@q) @ = DequantizeLinear (@r, fh, u3)
@, @c, @z = DynamicQuantizeLinear ($f) | @ = MatMulInteger ($u, levels, u3)
@ = QLinearMatMul ($u, fh, u3, levels, fh, s0, ft, u7) | @ = DequantizeLinear ($u, fh, u7)
@w = DequantizeLinear <axis = 1> (levels, scales, ) @ = MatMul ($f, @w)
@q = QuantizeLinear ($f, fh, u3) @ = MatMulInteger (@q, levels)
"""
WIDE = "@ = Cast <to = 11> ($f) | @ = Cast <to = 1> ($d) | @ = Pow ($f, $d) | @ = Pow ($d, $f)"
HALF = "@ = Cast <to = 10> ($f) | @ = Cast <to = 1> ($h) | @ = Pow ($f, $h) | @ = Add ($h, %h)"

FEW = """
n: @ = Cast <to = 16> ($f) | e: @ = Cast <to = 17> ($f) | w: @ = Cast <to = 19> ($f)
e: @ = Cast <to = 17, saturate = 0> ($f) | n: @ = Cast <to = 16> ($d) | n: @ = Cast <to = 16> ($i)
@ = Cast <to = 1> ($n) | @ = Cast <to = 1> ($e) | @ = Cast <to = 1> ($w) | @ = Cast <to = 11> ($n)
@ = Cast <to = 10> ($n) | n: @ = Cast <to = 16> ($h) | n: @ = Cast <to = 16> ($e)
@ = Cast <to = 7> ($n)
@ = Cast <to = 9> ($n) | n: @ = Cast <to = 16> ($b) | n: @ = Cast <to = 16> ($n)
@ = Cast <to = 6> ($n)
"""
FOURS = """
q: @ = Cast <to = 22> ($f) | y: @ = Cast <to = 21> ($u) | q: @ = Cast <to = 22> ($s)
@ = Cast <to = 1> ($q) | @ = Cast <to = 1> ($y) | @ = Cast <to = 3> ($q) | @ = Cast <to = 2> ($y)
q: @ = QuantizeLinear <output_dtype = 22> ($f, fh) | @ = DequantizeLinear ($q, fh)
q: @ = QuantizeLinear <output_dtype = 22> ($f, ft) | @ = DequantizeLinear ($y, ft)
@q = QuantizeLinear <output_dtype = 17> ($f, fh) @ = DequantizeLinear (@q, fh)
@q = QuantizeLinear <output_dtype = 17> ($f, fh) @t = Transpose (@q) @ = DequantizeLinear (@t, fh)
@q = QuantizeLinear <output_dtype = 22> ($f, fh) @ = DequantizeLinear (@q, fh)
q: @q = QuantizeLinear <output_dtype = 22> ($f, fh) @ = Transpose (@q)
"""
NEWEST = """
@ = Attention <q_num_heads = 2, kv_num_heads = 2> ($f, $f, $f)
@ = Attention <q_num_heads = 2, kv_num_heads = 1> ($f, $f, $f)
@ = Attention <q_num_heads = 2, kv_num_heads = 2, is_causal = 1> ($f, &, &)
@ = Attention <q_num_heads = 2, kv_num_heads = 2, softcap = 2.0, scale = 0.5> (x, x, $f)
@q = Reshape (x, heads) @t = Transpose <perm = [0, 2, 1, 3]> (@q) @ = Attention (@t, @t, @t)
@q = Reshape (x, heads) @t = Transpose <perm = [0, 2, 1, 3]> (@q)
  @ = Attention <is_causal = 1> (@t, @t, @t)
@m = ReduceMax <keepdims = 0> (x, lm) @n = Unsqueeze (@m, l1) @o = Unsqueeze (@n, l1)
  @ = Attention <q_num_heads = 2, kv_num_heads = 2> (x, x, $f, @o)
@n = Unsqueeze (m, l1) @o = Unsqueeze (@n, l1) @p = Or (@o, yes)
  @ = Attention <q_num_heads = 2, kv_num_heads = 2> (x, $f, $f, @p)
@ = RMSNormalization ($f, fl) | @ = RMSNormalization <axis = -1, epsilon = 0.01> ($f, fl)
@ = LayerNormalization ($f, fl, fl) | @ = LayerNormalization <axis = -1> ($f, fl)
@ = Swish ($f) | @ = Swish <alpha = 0.5> ($f) | @ = Gelu ($f) | @ = Mish ($f) | @ = HardSwish ($f)
@ = Gelu <approximate = "tanh"> ($f) | @ = Celu <alpha = 2.0> ($f) | @ = Selu ($f)
@q = Unsqueeze ($f, l1) @c = Slice ($f, l0, l2, lm) @ = RotaryEmbedding (@q, @c, @c)
@q = Unsqueeze ($f, l1) @c = Slice (x, l0, l2, lm) @s = Neg (@c)
  @ = RotaryEmbedding <interleaved = 1> (@q, @c, @s)
@c = Slice ($f, l0, l1, lm) @ = RotaryEmbedding <num_heads = 2> ($f, @c, @c)
@u = Slice ($f, l0, l1, l1) @ = TensorScatter ($f, @u)
@s = Shape (x) @a = Gather (@s, l0) @i = Expand (l2, @a) @u = Slice ($f, l0, l1, l1)
  @ = TensorScatter <mode = "circular"> ($f, @u, @i)
@t = Transpose <perm = [0, 2, 1]> ($f) @ = GroupNormalization <num_groups = 2> (@t, fl, fl)
@a = Abs ($f) @c = Cast <to = 24, round_mode = "up"> (@a) @ = Cast <to = 1> (@c)
@a = Abs ($f) @c = Cast <to = 24, round_mode = "nearest"> (@a) @ = Cast <to = 1> (@c)
@ = Pad <mode = "wrap"> ($f, both, , lm) | @ = Pad ($f, both, , l1) | @ = ReduceMax ($b, lm)
@ = Shape <start = -1> (#) | @ = Shape <start = 1, end = -1> (#) | @ = IsInf ($f)
@, @b = Split <num_outputs = 2, axis = -1> (#) | @a, @ = Split <num_outputs = 3, axis = -1> (#)
@ = BitwiseAnd ($i, i2) | @ = BitwiseNot ($k) | @ = CenterCropPad <axes = [-1]> ($f, l2)
@ = ScatterElements <reduction = "max"> ($i, lm, i2) | @ = ReduceL2 <keepdims = 0> ($f, three)
@d = DFT ($f, , lm) @ = ReduceSum (@d) | @ = ReduceSumSquare ($f, l0) | @ = Clip ($i, i0, i2)
"""
TEXTS = """
@ = StringConcat ($t, %t) | @ = Equal ($t, %t)
@ = StringNormalizer <case_change_action = "UPPER"> ($t)
@ = Cast <to = 8> ($i) | @ = Cast <to = 8> ($b) | @ = Concat <axis = 0> ($t, %t) | @ = Identity ($t)
@ = RegexFullMatch <pattern = "a.*"> ($t) | @, @n = StringSplit <delimiter = "b"> ($t)
@e = Equal ($t, %t) @ = Where (@e, $t, %t) | @e = Not ($b) @ = Where (@e, $t, &)
@ = Gather ($t, i0) | @s = Shape ($t) @ = ConstantOfShape (@s) | @ = Expand ($t, row)
@, @i, @v, @c = Unique ($t) | @u, @, @v, @c = Unique ($t) | @ = Reshape ($t, lm)
"""
RANKS = """
@ = Reshape (#, six) | @ = Reshape (#, eight) | @ = Unsqueeze (#, three) | @ = Unsqueeze (#, both)
@ = Add ($f, %f) | @ = Mul ($f, %f) | @ = Where ($b, $f, %f) | @ = Max ($f, %f)
@ = MatMul ($f, %f)
@ = Expand ($f, eight) | @ = Expand ($i, six) | @ = Less ($f, %f) | @ = Add ($i, %i)
@ = Transpose (#)
@ = ReduceSum <keepdims = 1> ($f, l1) | @ = ReduceMax <keepdims = 0> ($f, three) | @ = Squeeze (#)
@ = Sum ($f, %f, $f) | @ = And ($b, %b) | @ = Concat <axis = 1> (#, &) | @ = Squeeze (#, l1)
@ = Slice (#, l0, l1, l2) | @ = Softmax <axis = 1> ($f) | @ = Flatten <axis = 3> (#)
@ = Pow ($f, i2)
@ = Gather <axis = 2> (#, both) | @ = Tile ($f, eight) | @ = Sub (ft, $f) | @ = Expand ($b, eight)
"""
MAYBE = """
@o = Optional ($f) @ = OptionalGetElement (@o) | @o = Optional (#) @ = OptionalHasElement (@o)
@s = SequenceConstruct (#, &) @o = Optional (@s) @q = OptionalGetElement (@o)
  @ = SequenceAt (@q, i0)
@s = SequenceConstruct ($f, %f) @ = SequenceAt (@s, i0)
@s = SequenceConstruct (#, &) @ = SequenceLength (@s)
@s = SplitToSequence <axis = 0> (#) @ = SequenceAt (@s, i0) | @ = OptionalHasElement ($f)
@s = SequenceEmpty <dtype = 1> () @t = SequenceInsert (@s, $f) @ = SequenceAt (@t, i0)
@s = SplitToSequence <axis = -1> (#, l1) @ = ConcatFromSequence <axis = -1> (@s)
"""


class Drawn:
    """A model, and what it is fed.

    Args:
        seed: Of all that is drawn.
        kind: Of which steps, by its name in `KINDS`.
    """

    def __init__(self, seed: int, kind: str) -> None:
        self.rng, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.kind, self.count = kind, 0
        self.opset = self.rng.choice(OPSETS.get(kind, (13, 15, 17, 18, 20)))
        self.inputs = INPUTS | (WORDS if kind == "texts" else {})
        self.feeds = [{n: self._array(said, s) for n, said in self.inputs.items()} for s in SIZES]
        self.lines: list[str] = []
        self.functions: list[str] = []
        self.types = {name: said[0] for name, said in self.inputs.items()}
        for _ in range(self.rng.choice((6, 10, 16))):
            self._step()
        made = [name for name in self.types if name not in self.inputs] or ["x"]
        last = made[-8:] if self.rng.random() < 0.8 else made * 3
        ends = list(dict.fromkeys(self.rng.choices(last, k=len(last) // 3 + 1)))
        for place, end in enumerate(ends):
            if self.types[end] in NARROW:
                self.lines.append(f"{end}z = Cast <to = 1> ({end})")
                ends[place] = f"{end}z"
        self.ends = ends
        self.model = self._model(self.lines, {end: self.types.get(end, "f") for end in ends})

    def _array(self, said: str, sizes: dict[str, int]) -> Array:
        shape = [sizes.get(d) or int(d) for d in said[2:-1].split(",")]
        if said[0] == "f":
            return (self.numbers.integers(-12, 13, shape) / 4).astype(np.float32)
        if said[0] == "t":
            return self.numbers.choice(np.array(["", "ab", "abba", "b,a", "é"], object), shape)
        low, dtype = 0 if said[0] in "ub" else -5, TYPES[said[0]]
        return self.numbers.integers(low, 2 if said[0] == "b" else 6, shape).astype(dtype)

    def _model(self, lines: list[str], ends: dict[str, str]) -> onnx.ModelProto:
        given = ", ".join(f"{TYPES[said[0]]}{said[1:]} {n}" for n, said in self.inputs.items())
        outs = ", ".join(f"{TYPES.get(key, 'float')} {name}" for name, key in ends.items())
        text = f"g ({given}) => ({outs}) <{CONSTANTS}> {{ {' '.join(lines)} }}"
        local = ', "local": 1, "far.away": 1' if self.functions else ""
        model = parse(" ".join([text, *self.functions]), self.opset, 10, local)
        for output in model.graph.output:
            output.type.tensor_type.ClearField("shape")
        return model

    def _step(self) -> None:
        for name, line, key in self._runs(self.types, [], 0):
            self.lines.append(line)
            self.types[name] = key

    def _runs(
        self, types: dict[str, str], before: list[str], depth: int
    ) -> Iterator[tuple[str, str, str]]:
        """A step that runs behind the graph and these lines; none where none was drawn soon."""
        for _ in range(3 if depth else 8):
            functions = len(self.functions)
            name, line = self._line(types, before, depth)
            told, _, line = line.rpartition(": ") if line[1:3] == ": " else ("", "", line)
            if key := self._ran([*self.lines, *before, line], name, told):
                yield name, line, key
                return
            del self.functions[functions:]

    def _ran(self, lines: list[str], name: str, told: str) -> str | None:
        """Of which type a value is, if the graph runs at all sizes and keeps within bounds."""
        if told in NARROW:
            lines, name = [*lines, f"{name}z = Cast <to = 1> ({name})"], f"{name}z"
        try:
            model = self._model(lines, {name: "f"})
            model.graph.output[0].ClearField("type")
            session = Session(model)
            found = [session.run(feeds)[name] for feeds in self.feeds]
        except (NotRunnable, RunFailed, onnx.parser.ParseError):
            return None
        if any(a.size > 4095 or a.ndim > 8 for a in found):
            return None
        small = found[0].dtype == object or all(
            (np.abs(a.astype(float)) < 1e4).all() for a in found
        )
        return told or KEYS.get(found[0].dtype) if small else None

    def _line(self, types: dict[str, str], before: list[str], depth: int) -> tuple[str, str]:
        """A step, and what its result is called."""
        kinds = KINDS[self.kind]
        steps = self.rng.choice([k for k in kinds if k not in BODIES] if depth > 1 else kinds)
        self.count += 1
        name = f"v{self.count}"
        if steps in BODIES:
            return name, BODIES[steps](self, name, types, before, depth + 1)
        return name, self._filled(self.rng.choice(_each(steps)), name, types)

    def _some(self, types: dict[str, str], key: str = "") -> str:
        """A value of a type, one of the newest more often; any where there is none."""
        fit = [n for n, k in types.items() if key in ("", k)] or [*types]
        return self.rng.choice(fit[-5:] if self.rng.random() < 0.8 else fit)

    def _filled(self, text: str, name: str, types: dict[str, str]) -> str:
        whole = self._some(types)
        if types[whole] in NARROW and text[1:3] != ": ":
            text = f"{types[whole]}: {text.strip()}" if "#" in text else text
        text = re.sub(r"[$%](\w)", lambda found: self._some(types, found[1]), text)
        text = text.replace("#", whole).replace("&", whole)
        return re.sub(r"@(\w?)", lambda found: name + found[1], text.strip())

    def _body(
        self, types: dict[str, str], before: list[str], depth: int, given: dict[str, str]
    ) -> str:
        """Steps of a body whose inputs begin as these values, and `@l`, the last as a float."""
        inner, lines, last = dict(types), [], next(iter(given), "x")
        around = [*before, *(f"{name} = Identity ({value})" for name, value in given.items())]
        for _ in range(self.rng.choice((1, 2, 4))):
            for name, line, key in self._runs(inner, [*around, *lines], depth):
                lines.append(line)
                inner[name], last = key, name
        return f"{' '.join(lines)} @l = Cast <to = 1> ({last})"

    def _if(self, name: str, types: dict[str, str], before: list[str], depth: int) -> str:
        ends = []
        for branch in ("then", "else"):
            body = self._body(types, before, depth, {}).replace("@", f"{name}{branch}")
            ends.append(f"{branch}_branch = b () => (float[] {name}{branch}l) {{ {body} }}")
        return (
            f"{name}n = Cast <to = 6> ({self._some(types, 'b')}) {name}r = ReduceMax "
            f"<keepdims = 0> ({name}n) {name}c = Cast <to = 9> ({name}r) "
            f"{name} = If ({name}c) <{', '.join(ends)}>"
        )

    def _loop(self, name: str, types: dict[str, str], before: list[str], depth: int) -> str:
        begin = self._some(types, "f")
        inner = {**types, f"{name}i": "i", f"{name}s": types[begin]}
        given = {f"{name}i": "i0", f"{name}s": begin}
        body = self._body(inner, before, depth, given).replace("@", name)
        carried = self.rng.choice((f"Neg ({name}s)", f"Add ({name}s, {begin})", f"Relu ({name}s)"))
        counts, outs = self.rng.choice(("i2, ", "i2, yes", ", yes")), f"{name}y, {name}"
        if self.rng.random() < 0.5:  # of no turns nothing says how many axes a list of results has
            counts, outs = self.rng.choice((counts, "i2, no", "i0, ")), f"{name}, {name}z"
        return (
            f"{outs} = Loop ({counts}, {begin}) <body = b (int64 {name}i, bool {name}k, "
            f"float[] {name}s) => (bool {name}o, float[] {name}e, float[] {name}l) {{ {body} "
            f"{name}o = Less ({name}i, i2) {name}e = {carried} }}>"
        )

    def _scan(self, name: str, types: dict[str, str], before: list[str], depth: int) -> str:
        begin, rows = self._some(types, "f"), self._some(types)
        inner = {**types, f"{name}p": types[rows], f"{name}s": types[begin]}
        first = [f"{name}q = Gather <axis = 0> ({rows}, i0)", f"{name}f = Reshape ({begin}, lm)"]
        given = {f"{name}p": f"{name}q", f"{name}s": f"{name}f"}
        body = self._body(inner, [*before, *first], depth, given).replace("@", name)
        return (
            f"{first[1]} {name}y, {name} = Scan ({name}f, {rows}) <num_scan_inputs = 1, body = b "
            f"(float[w] {name}s, {TYPES[types[rows]]}[] {name}p) => (float[w] {name}e, float[z] "
            f"{name}t) {{ {body} {name}e = Neg ({name}s) {name}t = Reshape ({name}l, lm) }}>"
        )

    def _call(self, name: str, types: dict[str, str], before: list[str], depth: int) -> str:
        given = {f"{name}{key}": self._some(types) for key in "ab"}
        inner = {own: types[value] for own, value in given.items()}
        body = self._body(inner, before, 2, given).replace("@", name)
        read = [n for n in re.findall(r"(\w+) = \{", CONSTANTS) if re.search(rf"\b{n}\b", body)]
        domain, opset = "local", self.opset
        if self.kind == "domains":  # functions are of opsets of their own
            domain = self.rng.choice(("local", "far.away"))
            opset = self.rng.choice((opset, opset + 1, max(13, opset - 1)))
        self.functions.append(
            f'<domain: "{domain}", opset_import: ["": {opset}, "local": 1, "far.away": 1]> '
            f"F{name} <to> ({', '.join([*given, *read])}) => ({name}m) {{ {body} "
            f"{name}m = Cast <to: int = @to> ({name}l) }}"
        )
        operands = ", ".join([*given.values(), *read])
        return f"{name} = {domain}.F{name} <to = {self.rng.choice((1, 7, 9))}> ({operands})"


def _each(steps: str) -> list[str]:
    """The steps of a text, where a line that is indented goes on with the last one."""
    return re.split(r"[|\n]", steps.strip().replace("\n  ", " "))


BODIES = {"if": Drawn._if, "loop": Drawn._loop, "scan": Drawn._scan, "call": Drawn._call}
KINDS = {
    "numbers": (NUMBERS, NUMBERS, VIEWS),
    "levels": (LEVELS, LEVELS, FLOATS, VIEWS),
    "floats": (FLOATS, re.sub(r"([$%])f", r"\1d", FLOATS), WIDE, WIDE, HALF, HALF, VIEWS),
    "bodies": (NUMBERS, FLOATS, VIEWS, *BODIES),
    "few": (FEW, FEW, VIEWS, FLOATS),
    "fours": (FOURS, FOURS, FEW, VIEWS, FLOATS),
    "newest": (NEWEST, NEWEST, NEWEST, FLOATS, VIEWS),
    "texts": (TEXTS, TEXTS, VIEWS),
    "ranks": (RANKS, RANKS, VIEWS),
    "domains": (NUMBERS, FLOATS, VIEWS, "call", "call", "if"),
    "maybe": (MAYBE, NUMBERS, FLOATS, VIEWS, "if", "call"),
}
OPSETS = {
    **{"few": (19, 21, 22, 23), "fours": (21, 23), "newest": (23, 24), "texts": (20, 21, 23)},
    **{"ranks": (13, 17, 21, 23), "maybe": (18, 20, 21, 23), "domains": (13, 14, 17, 18, 21)},
}
