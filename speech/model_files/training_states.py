"""The state of a training on disk: whole or as it was before, and of no other training."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.atomic_write import write_atomically
from common.errors import InputError
from speech.model_files.devices import Device


def save_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write what a training goes on from; its `key` says which training it is."""
    import torch

    content = io.BytesIO()
    torch.save({**state}, content)
    write_atomically(path, content.getvalue())


def load_state(path: Path, key: str, device: Device = "cpu") -> dict[str, Any] | None:
    """Return what a training goes on from; None where it has not begun.

    Raises:
        InputError: the file is damaged, or of another training.
    """
    import torch

    if not path.is_file():
        return None
    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # torch raises whatever a broken file leads to
        raise InputError(
            f"{path}: expected the state of a training, found a damaged file. Delete it to start again."
        ) from error
    if state["key"] != key:
        raise other_training(path.parent)
    return state


def other_training(folder: Path) -> InputError:
    """Return the error of a folder in which another training began."""
    return InputError(
        f"{folder}: expected no training, or this one; found one of another recipe, seed or speech. Choose another "
        "folder."
    )
