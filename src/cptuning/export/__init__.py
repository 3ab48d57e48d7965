"""Models for places without torch."""

from cptuning.export.exporter import export_onnx

__all__ = ["export_onnx"]
