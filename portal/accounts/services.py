"""What people change in their own account. Tokens: `tokens.py`; address, password and second factor: django-allauth."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction

from portal.accounts.models import User
from portal.accounts.notice_kinds import DECLINABLE
from portal.core import audit


@transaction.atomic
def rename(*, user: User, name: str) -> User:
    """Change the name by which others see a person."""
    before, user.name = user.name, name
    user.save(update_fields=["name"])
    audit.record("account.renamed", user, actor=user, before=before)
    return user


@transaction.atomic
def choose_notices(*, user: User, wanted: Collection[str], offered: Collection[str]) -> User:
    """Keep which of the mails that were offered a person declined; of the others the choice stays."""
    before = set(user.unwanted_notices) - set(offered)
    declined = before | (set(offered) - set(wanted))
    user.unwanted_notices = [kind.value for kind in DECLINABLE if kind.value in declined]
    user.save(update_fields=["unwanted_notices"])
    audit.record("account.notices-chosen", user, actor=user, declined=user.unwanted_notices)
    return user
