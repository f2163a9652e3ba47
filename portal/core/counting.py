"""Counts beside the rows of a list."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce


def count_rows(rows: QuerySet[Any], owner: str) -> Coalesce:
    """Return how many of these rows belong to each object of a query, for its `annotate`.

    Each count is a subquery: counting over two joins at once looks at every pair of their rows.

    Args:
        owner: the field of the rows that names the object.
    """
    of_one = rows.order_by().filter(**{owner: OuterRef("pk")}).values(owner)
    return Coalesce(Subquery(of_one.annotate(count=Count("pk")).values("count")), 0)
