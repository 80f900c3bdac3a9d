"""Wrong rewrites of what slides: windows, pads, strides, dilations."""

from planting import IMAGE, TWICE, Planted, X, numbers

WINDOWS: dict[str, Planted] = {
    # windows
    "window one to the left": (
        IMAGE,
        "y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)",
        "y = AveragePool <kernel_shape = [3, 3], pads = [1, 2, 1, 0]> (x)",
    ),
    "padding counted": (
        IMAGE,
        "y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)",
        "y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1> (x)",
    ),
    "wider window": (
        IMAGE,
        "y = MaxPool <kernel_shape = [2, 2]> (x)",
        "y = MaxPool <kernel_shape = [3, 3], pads = [0, 0, 1, 1]> (x)",
    ),
    "mean for maximum": (
        IMAGE,
        "y = GlobalMaxPool (x)",
        "y = GlobalAveragePool (x)",
    ),
    "only at odd sizes: rounded up": (
        IMAGE,
        "y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)",
        "y = MaxPool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1> (x)",
    ),
    # more windows
    "dilation for a wider kernel": (
        IMAGE,
        "y = MaxPool <kernel_shape = [2, 2], dilations = [2, 2]> (x)",
        "y = MaxPool <kernel_shape = [3, 3]> (x)",
    ),
    "dilation along the other axis": (
        IMAGE,
        "y = MaxPool <kernel_shape = [2, 2], dilations = [1, 2], pads = [1, 1, 1, 1]> (x)",
        "y = MaxPool <kernel_shape = [2, 2], dilations = [2, 1], pads = [1, 1, 1, 1]> (x)",
    ),
    "strides swapped": (
        IMAGE,
        "y = MaxPool <kernel_shape = [2, 2], strides = [1, 2]> (x)",
        "y = MaxPool <kernel_shape = [2, 2], strides = [2, 1]> (x)",
    ),
    "only at some sizes: rounded down": (
        IMAGE,
        "y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1> (x)",
        "y = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (x)",
    ),
    "only at odd sizes: what is beyond the end counted": (
        IMAGE,
        "y = AveragePool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1> (x)",
        "y = AveragePool <kernel_shape = [2, 2], strides = [2, 2], pads = [0, 0, 1, 1], "
        "count_include_pad = 1> (x)",
    ),
    "only at even sizes: one more": (
        IMAGE,
        "y = MaxPool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1> (x)",
        "y = MaxPool <kernel_shape = [2, 2], strides = [2, 2], pads = [1, 1, 0, 0]> (x)",
    ),
    "zeros for nothing around a maximum": (
        IMAGE,
        "y = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)",
        numbers("p", 0, 0, 1, 1, 0, 0, 1, 1)
        + "q = Pad (x, p)\ny = MaxPool <kernel_shape = [3, 3]> (q)",
    ),
    "reflected for repeated": (
        IMAGE,
        numbers("p", 0, 0, 1, 1, 0, 0, 1, 1) + 'y = Pad <mode = "edge"> (x, p)',
        numbers("p", 0, 0, 1, 1, 0, 0, 1, 1) + 'y = Pad <mode = "reflect"> (x, p)',
    ),
    "padded at the other end": (
        X,
        numbers("p", 0, 0, 1, 0, 0, 0) + "y = Pad (x, p)",
        numbers("p", 0, 0, 0, 0, 0, 1) + "y = Pad (x, p)",
    ),
    "corners for halves": (
        IMAGE,
        TWICE + 'y = Resize <mode = "linear"> (x, , s)',
        'y = Resize <mode = "linear", coordinate_transformation_mode = "asymmetric"> (x, , s)',
    ),
    "only at ties: nearest from above": (
        IMAGE,
        "s = Constant <value_floats = [1.0, 1.0, 0.5, 0.5]> ()\n"
        'y = Resize <mode = "nearest"> (x, , s)',
        'y = Resize <mode = "nearest", nearest_mode = "round_prefer_ceil"> (x, , s)',
    ),
    "bias of a Conv lost": (
        "float[b,2,h,w] x, float[4,2,3,3] k, float[4] z",
        "y = Conv (x, k, z)",
        "y = Conv (x, k)",
    ),
    "kernel not turned over": (
        "float[b,2,t] x, float[2,3,3] k",
        "y = ConvTranspose (x, k)",
        "u = Transpose <perm = [1, 0, 2]> (k)\ny = Conv <pads = [2, 2]> (x, u)",
    ),
    "groups in another order": (
        "float[b,4,t] x, float[4,2,3] k",
        "y = Conv <group = 2> (x, k)",
        numbers("i", 2, 3, 0, 1) + "g = Gather <axis = 1> (x, i)\ny = Conv <group = 2> (g, k)",
    ),
}
