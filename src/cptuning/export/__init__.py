"""Models for places without torch."""

from cptuning.export.onnx import export_onnx

__all__ = ["export_onnx"]
