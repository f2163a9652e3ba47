"""What tables of several pages say of a corpus."""

from __future__ import annotations

from portal.challenges.models import Corpus


def ribbon_of(corpus: Corpus | None) -> str:
    """Return every table that names a corpus without real speakers says so."""
    return "synthetic speech" if corpus and corpus.is_synthetic else ""
