"""What comes next in an edition, for its page, which stands below this app."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils import timezone

from portal.challenges.models import Edition
from portal.home.next_steps import EditionPath, edition_path, select_organized

register = template.Library()


@register.simple_tag
def path_for(user: Any, edition: Edition) -> EditionPath | None:
    """`{% path_for user edition as path %}`: its way and what its organizer does next; None once it is archived."""
    organized = select_organized(user).filter(pk=edition.pk).first()
    return None if organized is None else edition_path(organized, timezone.now())
