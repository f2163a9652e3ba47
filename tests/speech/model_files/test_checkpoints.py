"""Checkpoints: what is written comes back, what does not fit is named whole, what would run code is refused."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from common.errors import InputError

torch = pytest.importorskip("torch", reason="checkpoints need torch, which is not installed here")
safetensors = pytest.importorskip("safetensors", reason="checkpoints need safetensors, which is not installed here")

from speech.model_files.checkpoints import load_state, read_state, save_checkpoint  # noqa: E402


def network(inputs: int = 3, outputs: int = 2) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(inputs, outputs), torch.nn.BatchNorm1d(outputs))


def values(module: torch.nn.Module) -> dict[str, list[float]]:
    return {name: tensor.flatten().tolist() for name, tensor in module.state_dict().items()}


def test_a_checkpoint_comes_back_with_its_metadata(tmp_path: Path):
    path, trained, empty = tmp_path / "own.safetensors", network(), network()
    save_checkpoint(path, trained, {"architecture": "example"})
    load_state(path, empty)
    assert values(empty) == values(trained)
    with safetensors.safe_open(path, "pt") as file:
        assert file.metadata() == {"architecture": "example"}
    assert [file.name for file in tmp_path.iterdir()] == ["own.safetensors"]


def test_published_names_are_translated_and_counters_of_batches_may_lack(tmp_path: Path):
    path, trained, empty = tmp_path / "published.ckpt", network(), network()
    state = {
        name.replace("0.", "fc.", 1) if name.startswith("0.") else name.replace("1.", "bn.norm.", 1): tensor
        for name, tensor in trained.state_dict().items()
        if not name.endswith("num_batches_tracked")
    }
    torch.save(state, path)
    load_state(path, empty, [(r"^fc\.", "0."), (r"^bn\.norm\.", "1.")])
    assert values(empty) == values(trained)


def test_every_difference_is_named_at_once_and_nothing_is_loaded(tmp_path: Path):
    path, other = tmp_path / "other.ckpt", network()
    before = values(other)
    torch.save({"0.weight": torch.zeros(2, 4), "0.bias": torch.zeros(2), "extra": torch.zeros(1)}, path)
    with pytest.raises(InputError) as caught:
        load_state(path, other)
    text = str(caught.value)
    assert "4 missing: 1.weight, 1.bias, 1.running_mean, 1.running_var" in text
    assert "1 unexpected: extra" in text
    assert "1 of another shape: 0.weight is 2×4 instead of 2×3" in text
    assert values(other) == before


def test_two_names_that_become_one_are_refused(tmp_path: Path):
    path = tmp_path / "double.ckpt"
    torch.save({"a.weight": torch.zeros(1), "b.weight": torch.zeros(1)}, path)
    with pytest.raises(InputError, match=r"“0\.weight” under two names"):
        load_state(path, network(), [(r"^[ab]\.", "0.")])


def test_weights_that_are_not_finite_are_refused(tmp_path: Path):
    path, broken = tmp_path / "broken.safetensors", network()
    with torch.no_grad():
        broken[0].weight[0, 0] = torch.nan
    save_checkpoint(path, broken)
    with pytest.raises(InputError, match=r"not finite, in 0\.weight"):
        load_state(path, network())


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")  # torch's word on the last of them
@pytest.mark.parametrize("how", ["torch", "torch-legacy", "pickle"])
def test_a_file_that_would_run_code_is_refused_and_not_run(tmp_path: Path, how: str):
    path, sprung = tmp_path / "trap.ckpt", tmp_path / "sprung"
    content = {"0.weight": Trap(sprung)}
    if how == "pickle":
        path.write_bytes(pickle.dumps(content))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=how == "torch")
    with pytest.raises(InputError, match="would run code"):
        read_state(path)
    assert not sprung.exists()


def test_a_torchscript_program_is_refused(tmp_path: Path):
    import zipfile

    path = tmp_path / "final.jit"
    with zipfile.ZipFile(path, "w") as archive:  # what marks such a file, without compiling one
        archive.writestr("final/constants.pkl", b"")
        archive.writestr("final/code/__torch__.py", b"")
    with pytest.raises(InputError, match="TorchScript program"):
        read_state(path)


@pytest.mark.parametrize("content", [[1, 2], {"epoch": 3, "model": {}}])
def test_other_content_than_named_tensors_is_refused(tmp_path: Path, content: object):
    path = tmp_path / "other.pt"
    torch.save(content, path)
    with pytest.raises(InputError, match="state dict of named tensors"):
        read_state(path)


@pytest.mark.parametrize("kind", ["safetensors", "torch"])
def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path, kind: str):
    path = tmp_path / "whole"
    if kind == "torch":
        torch.save(network(20, 20).state_dict(), path)
    else:
        save_checkpoint(path, network(20, 20))
    content = path.read_bytes()
    for length in (1, 8, 9, 60, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match="no checkpoint that can be read"):
            read_state(path)


def test_empty_missing_and_foreign_files_get_a_sentence(tmp_path: Path):
    empty, text = tmp_path / "empty.pt", tmp_path / "readme.pt"
    empty.touch()
    text.write_text("not found: 404\n" * 20)
    for path, sentence in ((empty, "is empty"), (text, "no checkpoint"), (tmp_path / "none.pt", "no file")):
        with pytest.raises(InputError, match=sentence):
            read_state(path)
