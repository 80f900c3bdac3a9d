"""External data that lie where they should not: each place, and what is said of it."""

import os
from pathlib import Path

import onnx
from hostile_models import with_tensor
from onnx import TensorProto

WHERE: dict[str, tuple[dict[str, str], str]] = {
    "a way up": ({"location": "../secret.bin"}, "outside the model's folder"),
    "up and down": ({"location": "sub/../../secret.bin"}, "outside the model's folder"),
    "absolute": ({"location": "/etc/passwd"}, "outside the model's folder"),
    "a drive": ({"location": "C:\\secret.bin"}, "outside the model's folder"),
    "ways of Windows": ({"location": "..\\secret.bin"}, "outside the model's folder"),
    "a link": ({"location": "link.bin"}, "a link out of the model's folder"),
    "a folder that is a link": ({"location": "linked/secret.bin"}, "a link out of the model's"),
    "a device": ({"location": "zero.bin"}, "data file `zero.bin`"),
    "a pipe": ({"location": "pipe.bin"}, "data file `pipe.bin`"),
    "a folder": ({"location": "sub"}, "data file `sub`"),
    "nothing": ({}, "outside the model's folder"),
    "a NUL": ({"location": "a\0b"}, ""),
    "a name of 1 MB": ({"location": "n" * (1 << 20)}, ""),
    "escape codes": ({"location": "\x1b[2J\x07.bin"}, ""),
    "beyond the end": ({"location": "data.bin", "offset": "4096"}, "beyond the end"),
    "partly beyond the end": ({"location": "data.bin", "offset": "52"}, "beyond the end"),
    "a huge offset": ({"location": "data.bin", "offset": "9" * 18}, "beyond the end"),
    "a negative offset": ({"location": "data.bin", "offset": "-16"}, "offset"),
    "an offset of words": ({"location": "data.bin", "offset": "1e3"}, "offset"),
    "a negative length": ({"location": "data.bin", "length": "-16"}, "length"),
    "a length too short": ({"location": "data.bin", "length": "8"}, "bytes"),
    "a length too long": ({"location": "data.bin", "length": "64"}, "bytes"),
    "a length of 40 digits": ({"location": "data.bin", "length": "9" * 40}, "length"),
}


SECRET = b"secret" * 20


def reaching(kind: str, folder: Path) -> onnx.ModelProto:
    """A model in `folder` whose data lie where they should not; what it reaches for is there."""
    (folder / "sub").mkdir(parents=True, exist_ok=True)
    (folder.parent / "secret.bin").write_bytes(SECRET)
    (folder / "data.bin").write_bytes(b"\1" * 64)
    if not (folder / "pipe.bin").exists():
        (folder / "link.bin").symlink_to(folder.parent / "secret.bin")
        (folder / "zero.bin").symlink_to("/dev/zero")
        (folder / "linked").symlink_to(folder.parent)
        os.mkfifo(folder / "pipe.bin")
    model = with_tensor()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in WHERE[kind][0].items():
        tensor.external_data.add(key=key, value=value)
    return model
