"""Torch at one thread: calls side by side leave it so until the last of them has ended."""

import pytest

from speech.model_files.devices import use_torch_threads

torch = pytest.importorskip("torch")


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_last_of_several_calls_gives_the_threads_back(two_threads):
    first, second = use_torch_threads(1), use_torch_threads(1)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert torch.get_num_threads() == 1
    second.__exit__(None, None, None)
    assert torch.get_num_threads() == 2


def test_threads_are_given_back_after_an_error(two_threads):
    with pytest.raises(ValueError, match="wrong"), use_torch_threads(1):
        raise ValueError("wrong")
    assert torch.get_num_threads() == 2
