"""Checkpoints of networks: written as safetensors, read as safetensors or as torch files of plain tensors.

A file is compared with the declared architecture before anything is loaded, and every difference is named at once;
published files translate their names by a table first. A torch file that would run code is refused: a pickle is a
program. Conventions: a state is a mapping of names to tensors, on the processor.
"""

from __future__ import annotations

import json
import pickle
import re
import zipfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.atomic_write import write_atomically
from common.errors import InputError
from common.wording import name_some

if TYPE_CHECKING:
    from torch import Tensor, nn

Renames = Sequence[tuple[str, str]]  # patterns and what takes their place, the first that matches
Shapes = Mapping[str, tuple[int, ...]]

_COUNTER = "num_batches_tracked"  # of batch normalisation; without it nothing changes where momentum is fixed
_LONGEST_HEADER = 10_000_000  # bytes


def differences(expected: Shapes, found: Shapes) -> str:
    """Return all that a file's tensors and an architecture's have not in common, long lists cut; empty where they
    agree.

    Counters of batches may be absent.
    """
    shapes = [
        f"{name} is {_shape(found[name])} instead of {_shape(expected[name])}"
        for name in expected
        if name in found and expected[name] != found[name]
    ]
    kinds = {
        "missing": [name for name in expected if name not in found and not name.endswith(_COUNTER)],
        "unexpected": [name for name in found if name not in expected],
        "of another shape": shapes,
    }
    return "; ".join(f"{len(names)} {kind}: {name_some(names, 8)}" for kind, names in kinds.items() if names)


def save_checkpoint(path: Path, module: nn.Module, metadata: Mapping[str, str] | None = None) -> None:
    """Write a network's tensors as safetensors, whole or not at all.

    Args:
        path: its folder exists.
        metadata: texts kept in the file's header, such as the name of the architecture.
    """
    from safetensors.torch import save

    state = {name: tensor.detach().cpu().contiguous() for name, tensor in module.state_dict().items()}
    write_atomically(path, save(state, metadata=None if metadata is None else dict(metadata)))


def read_state(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file by name.

    Raises:
        InputError: no such file, an empty, cut or other one, one that would run code, or one that holds anything
            but tensors.
    """
    _require(path)
    with path.open("rb") as file:
        head = file.read(9)
    # A safetensors file starts with the length of its header, eight bytes, and a brace.
    state = _read_safetensors(path) if head[8:9] == b"{" else _read_torch(path)
    return dict(state)


def read_header(path: Path) -> tuple[Shapes, Mapping[str, str]]:
    """Return names and shapes of the tensors of a safetensors file, and its texts; no tensor is read, and no library
    loaded.

    Raises:
        InputError: no such file, or another one.
    """
    _require(path)
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header: Any = json.loads(file.read(length)) if length <= min(size, _LONGEST_HEADER) else None
        texts = dict(header.pop("__metadata__", {}))
        return {name: tuple(about["shape"]) for name, about in header.items()}, texts
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise InputError(_broken(path)) from error


def load_state(path: Path, module: nn.Module, renames: Renames = ()) -> None:
    """Load a file's tensors into a network of exactly these names and shapes.

    Args:
        path: a safetensors or torch file.
        module: as declared; unchanged where anything differs.
        renames: regular expressions and replacements for the file's names; the first that matches is applied.

    Raises:
        InputError: what `read_state` refuses, two names that become one, or tensors that differ from the
            network's; names all of them.
    """
    put_state(renamed(read_state(path), renames, path), module, path)


def put_state(state: Mapping[str, Tensor], module: nn.Module, path: Path, only: Collection[str] | None = None) -> None:
    """Put tensors into a network of exactly these names and shapes.

    Args:
        path: of the file that they come from, for the sentences.
        module: as declared; unchanged where anything differs.
        only: the names of the network's tensors that are to be found; the others stay. None: all.

    Raises:
        InputError: tensors that differ from the network's, or numbers that are not finite; names all of them.
    """
    expected = {name: tensor for name, tensor in module.state_dict().items() if only is None or name in only}
    if found := differences(_shapes(expected), _shapes(state)):
        raise InputError(
            f"{path.name} does not hold this network. Of its {len(expected)} tensors: {found}. "
            "Take the file of this architecture, or declare the one that it was trained with."
        )
    broken = [name for name, tensor in state.items() if tensor.is_floating_point() and not tensor.isfinite().all()]
    if broken:
        raise InputError(f"{path.name} holds numbers that are not finite, in {name_some(broken, 8)}. Train it again.")
    counters = {name: tensor for name, tensor in expected.items() if name.endswith(_COUNTER)}
    module.load_state_dict(counters | dict(state), strict=only is None)


def renamed(state: Mapping[str, Tensor], renames: Renames, path: Path) -> dict[str, Tensor]:
    """Return the state under the names that the table gives.

    Raises:
        InputError: two names become one.
    """
    tables = [(re.compile(pattern), replacement) for pattern, replacement in renames]
    result: dict[str, Tensor] = {}
    for name, tensor in state.items():
        new = next((pattern.sub(into, name) for pattern, into in tables if pattern.search(name)), name)
        if new in result:
            raise InputError(f"{path.name}: expected each tensor once, found “{new}” under two names.")
        result[new] = tensor
    return result


def _read_safetensors(path: Path) -> Mapping[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise InputError(_broken(path)) from error


def _read_torch(path: Path) -> Mapping[str, Tensor]:
    import torch

    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if any(name.endswith("constants.pkl") for name in archive.namelist()):
                raise InputError(
                    f"{path.name} is a TorchScript program, not plain tensors. Save its state dict as safetensors."
                )
    try:
        with path.open("rb") as file:  # by its name torch would take some for safetensors
            state = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if _asks_for_code(path, str(error)):
            raise InputError(
                f"{path.name} would run code when read, which is refused. Save the state dict alone, as safetensors."
            ) from error
        raise InputError(_broken(path)) from error
    except (RuntimeError, EOFError, ValueError, KeyError, IndexError, AttributeError, TypeError, OSError) as error:
        raise InputError(_broken(path)) from error
    if not isinstance(state, Mapping) or not all(
        isinstance(name, str) and isinstance(tensor, torch.Tensor) for name, tensor in state.items()
    ):
        raise InputError(
            f"{path.name}: expected a state dict of named tensors, found {type(state).__name__} with other content. "
            "Save the state dict of the network alone."
        )
    return state


def _asks_for_code(path: Path, error: str) -> bool:
    """Return whether torch stopped at a name to import, or the file is a pickle (which starts so) of another maker."""
    if "unsupported global" in error.lower() or "unsupported class" in error.lower():
        return True
    with path.open("rb") as file:
        return file.read(1) == b"\x80" and "unsupported operand" in error.lower()


def _require(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"Expected a checkpoint at {path}, found no file.")
    if path.stat().st_size == 0:
        raise InputError(f"{path.name} is empty. Copy or train it again.")


def _broken(path: Path) -> str:
    return (
        f"{path.name} is no checkpoint that can be read: expected a whole safetensors file or torch state dict. "
        "It may be cut off: copy it again and compare its size."
    )


def _shapes(state: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in state.items()}


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "one number"
