"""Listeners who count beside listeners who are left out, for whoever tells about each of them."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from listening.analysis.inputs import Ratings, Scored


def everybody(scored: Scored, with_excluded: Scored) -> Scored:
    """The scores that count, and after them those of listeners of whom nothing counts.

    A listener with two sessions, one of them left out, is told about by the one that counts.
    """
    is_out = ~np.isin(with_excluded.ratings.listener, scored.listeners)
    rows = with_excluded.ratings.rows(is_out)
    ratings = Ratings(
        *(np.concatenate([getattr(scored.ratings, one.name), getattr(rows, one.name)]) for one in fields(Ratings))
    )
    score = np.concatenate([scored.score, with_excluded.score[is_out]])
    listeners, listener = np.unique(ratings.listener, return_inverse=True)
    return Scored(scored.kind, ratings, score, listener.astype(np.int64), listeners, scored.scale)
