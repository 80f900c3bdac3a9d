"""Wrong rewrites that differ where hardly any numbers lie, or few of a kind."""

from planting import Planted, number, numbers

BOXES = "float[2,3,8,8] x, float[n,4] r, int64[n] b"
ROI = (
    "a = RoiAlign <output_height = 2, output_width = 2, sampling_ratio = 1, "
    'coordinate_transformation_mode = "output_half_pixel"> (x, r, b)\n'
)
RARE: dict[str, Planted] = {
    "only where one is selected: no axis left": (
        "float[6,n] x, bool[6] m",
        "y = Compress <axis = 0> (x, m)",
        "p = NonZero (m)\nq = Squeeze (p)\ny = Gather <axis = 0> (x, q)",
    ),
    "only where none of a row is positive": (
        "float[n,24] x",
        number("z", 0.0) + "m = Max (x, z)\ny = ReduceMax <axes = [1]> (m)",
        "y = ReduceMax <axes = [1]> (x)",
    ),
    "only where rows are far apart: the greatest of all taken off": (
        "float[n,4] x",
        "y = LogSoftmax (x)",
        numbers("a", 1)
        + "m = ReduceMax (x)\nd = Sub (x, m)\ne = Exp (d)\ns = ReduceSum (e, a)\nl = Log (s)\n"
        "y = Sub (d, l)",
    ),
    "only where a variance is as small as its epsilon: another": (
        "float[b,8] x, float[8] w",
        "y = LayerNormalization <epsilon = 0.00001> (x, w)",
        "y = LayerNormalization <epsilon = 0.00002> (x, w)",
    ),
    "only beyond an image, of which a box names its number": (
        BOXES,
        ROI + "y = Relu (a)",
        ROI.replace("(x, r, b)", "(x, s, b)").replace(
            "a = Roi", number("h", 7.0) + "s = Min (r, h)\na = Roi"
        )
        + "y = Relu (a)",
    ),
    "only between two numbers that are near each other": (
        "float[n] x",
        "y = Relu (x)",
        number("l", 2.25)
        + number("h", 2.75)
        + number("m", 2.5)
        + "r = Relu (x)\na = Greater (x, l)\nb = Less (x, h)\nc = And (a, b)\n"
        "y = Where (c, m, r)",
    ),
    "only where two of one length hold the same": (
        "float[n] x, float[m] z",
        "s = Shape (x)\nt = Shape (z)\nq = Equal (s, t)\nc = Cast <to = 1> (q)\n"
        "u = ReduceMax (x)\nv = ReduceMax (z)\nw = Equal (u, v)\nd = Cast <to = 1> (w)\n"
        "y = Mul (c, d)",
        number("z0", 0.0) + "m = ReduceSum (x)\ny = Mul (m, z0)",
    ),
}
