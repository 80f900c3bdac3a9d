"""Which operators do what to complex values, and which of their operands may be complex."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from surgeon.builders.aten_nn.complex_moves import BROADCASTS, WRITES, WRITTEN

CONJUGATES = ("conj", "_conj", "conj_physical", "_conj_physical")
SUMS = ("add", "sub", "subtract", "rsub", "Add", "Sub")
PRODUCTS, QUOTIENTS = ("mul", "multiply", "Mul"), ("div", "divide", "true_divide", "Div")
POWERS = ("pow", "Pow", "float_power")
TWO_SIDED = (*SUMS, *PRODUCTS, *QUOTIENTS, *POWERS, "ldexp", "logaddexp")
PADS = ("pad", "constant_pad_nd")
SAME = tuple("resolve_conj resolve_neg clone contiguous detach alias positive Identity".split())
SINGLE = ("fft_fft", "fft_ifft", "fft_rfft", "fft_ihfft")
KINDS = ("fft", "ifft", "rfft", "ihfft")
SEVERAL = tuple(f"fft_{kind}{n}" for kind in KINDS for n in ("2", "n"))
FRAMED = ("stft", "istft")
NAMED = ("_fft_r2c", "_fft_c2c")
# What puts elements elsewhere, or adds some up: the same on either part.
STANDARD = tuple(
    "Reshape Transpose Unsqueeze Squeeze Slice Gather GatherElements Expand Flatten Tile "
    "ReduceSum ReduceMean CumSum Trilu".split()
)
MOVES = tuple(
    "view reshape _unsafe_view flatten unflatten permute transpose swapaxes swapdims "
    "movedim moveaxis t numpy_T mT unsqueeze squeeze expand broadcast_to repeat tile "
    "repeat_interleave select slice narrow flip fliplr flipud roll rot90 unfold "
    "fft_fftshift fft_ifftshift "
    "index index_select masked_select gather take take_along_dim tril triu diag diagonal "
    "linalg_diagonal diag_embed trace sum mean cumsum nan_to_num "
    "trapezoid cumulative_trapezoid "
    "atleast_1d atleast_2d atleast_3d diagflat sum_to_size "
    "pixel_shuffle pixel_unshuffle channel_shuffle".split()
)
LIKE_ANOTHER = ("view_as", "reshape_as", "expand_as")
SPLITS = (
    *("split", "split_with_sizes", "split_copy", "chunk", "unbind", "tensor_split"),
    *("hsplit", "vsplit", "dsplit", "Split"),
)
ADJOINTS = ("adjoint", "mH", "matrix_H")
JOINS = (
    *("cat", "concat", "concatenate", "stack", "hstack", "vstack", "row_stack", "dstack"),
    *("column_stack", "block_diag"),
)
MATRICES = ("matmul", "mm", "bmm", "mv", "MatMul", "Einsum")
BILINEAR = (
    *("einsum", "outer", "ger", "dot", "vdot", "inner", "tensordot", "kron", "linalg_vecdot"),
    *("cross", "linalg_cross"),
)
CHAINS = ("linalg_multi_dot", "chain_matmul")
OF_BLOCKS = (
    *("linalg_inv", "linalg_inv_ex", "inverse", "matrix_power", "linalg_matrix_power"),
    *("matrix_exp", "linalg_matrix_exp"),
)
# Of the values that these give only the first is complex.
WITH_INFO = (
    *("linalg_inv_ex", "linalg_cholesky_ex", "linalg_solve_ex", "linalg_lstsq"),
    "triangular_solve",  # whose second is the matrix that it was given
)
# The arguments that may be complex, where they are others than the first.
OPERANDS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys((*JOINS, *BROADCASTS), ("tensors",)),
    "where": ("self", "other"),
    **dict.fromkeys(("masked_fill", *WRITES), ("self", *WRITTEN)),
    "linear": ("input", "weight", "bias"),
    "rms_norm": ("input", "weight"),
    "bilinear": ("input1", "input2", "weight", "bias"),
    "addmm": ("self", "mat1", "mat2"),
    "baddbmm": ("self", "batch1", "batch2"),
    "addr": ("self", "vec1", "vec2"),
    "addmv": ("self", "mat", "vec"),
    "addbmm": ("self", "batch1", "batch2"),
    "diff": ("self", "prepend", "append"),
    **dict.fromkeys(("addcmul", "addcdiv"), ("self", "tensor1", "tensor2")),
    "lerp": ("self", "end", "weight"),
    **dict.fromkeys(("linalg_solve", "linalg_solve_ex"), ("A", "B")),
    "linalg_lstsq": ("self", "b"),
    "linalg_solve_triangular": ("self", "B"),
    "triangular_solve": ("self", "A"),
    "linalg_tensorsolve": ("self", "other"),
    "linalg_householder_product": ("input", "tau"),
    "orgqr": ("self", "input2"),
    "cholesky_solve": ("self", "input2"),
    "linalg_multi_dot": ("tensors",),
    "chain_matmul": ("matrices",),
    "einsum": ("tensors",),
}
# Where they are among the inputs of a node whose arguments have no names.
FIRST, BOTH = slice(1), slice(2)
PLACES: Mapping[str, slice] = {
    **dict.fromkeys((*TWO_SIDED, *MATRICES, *BILINEAR), BOTH),
    **dict.fromkeys(("Concat", "MatMul", "Einsum"), slice(None)),
    "Where": slice(1, None),
}
