"""Whether torch can use the device that was asked for."""

from __future__ import annotations

from evaluation.attackers.contract import Device
from evaluation.metrics.errors import MetricInputError


def require_torch_device(device: Device) -> None:
    """Refuse a graphics card where torch finds none.

    Raises:
        MetricInputError: what is missing and what to do.
    """
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        built = "" if torch.version.cuda else ", and this torch was built without CUDA"
        raise MetricInputError(
            f"torch finds no graphics card here{built}. Choose the device “cpu”, or install torch for CUDA."
        )
