"""One thread for torch: small networks are fastest so, and sums come out the same to the last bit; a light encoder for
attacks that are held against the shipped one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from speech.encoders import registry

torch = pytest.importorskip("torch", reason="torch is not installed here")


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def light_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The long-term spectrum in the place of the shipped encoder, whose network takes seconds."""
    monkeypatch.setattr(registry, "DEFAULT", "long-term-spectrum")
