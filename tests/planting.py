"""What wrong rewrites are written with.

One is its inputs, match, replacement and, where it is not `y`, the outputs.
"""

Planted = tuple[str, ...]
X = "float[b,c,t] x"
IMAGE = "float[b,4,h,w] x"
TWO = "float[b,t] x, float[b,t] z"
INT = "int64[b,t] x"
INTS = "int64[b,t] x, int64[b,t] z"
HALF = "float16[b,t] x"
C = "{0} = Constant <value_{1} = {2}> ()\n"


def number(name: str, value: object) -> str:
    """A constant of the replacement."""
    return C.format(name, "float" if isinstance(value, float) else "int", value)


def numbers(name: str, *values: int) -> str:
    return C.format(name, "ints", list(values))


TWICE = "s = Constant <value_floats = [1.0, 1.0, 2.0, 2.0]> ()\n"
