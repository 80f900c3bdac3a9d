"""The witness: runs models that no runtime takes, and never looks at the code that rewrites them.

Standard stretches run in onnxruntime, each ATen node in a numpy function written from PyTorch's
documentation.
"""

from surgeon.reference.errors import NoWitness, Undefined
from surgeon.reference.executor import Reference, open_reference

__all__ = ["NoWitness", "Reference", "Undefined", "open_reference"]
