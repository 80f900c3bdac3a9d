"""surgeon repairs ONNX files after export and shows that it broke nothing."""
