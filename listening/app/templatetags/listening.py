"""What pages of apps below ask of listening tests."""

from __future__ import annotations

from typing import Any

from django import template
from django.db.models import prefetch_related_objects

from listening.app.results.selectors import list_shown_analyses
from portal.challenges.models import Edition

register = template.Library()


@register.inclusion_tag("listening/results/_edition_studies.html")
def published_studies(user: Any, edition: Edition) -> dict[str, Any]:
    """Return the studies of an edition, `{% published_studies user edition %}`, whose results everybody may see."""
    studies = [one.study for one in list_shown_analyses(user, edition) if one.is_published]
    prefetch_related_objects(studies, "questions")
    return {"studies": studies}
