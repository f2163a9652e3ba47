"""What people find in their own account."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Lower
from django.shortcuts import get_object_or_404

from common.errors import ProblemsError
from portal.accounts.models import AccessToken, User
from portal.accounts.rules import is_good
from portal.core.mail import sends_mail
from portal.core.models import AuditEvent


def operators() -> QuerySet[User]:
    """Return who can log in and look after the portal; not who was invited to and has no password yet."""
    can_log_in = Q(is_active=True) & ~Q(password__startswith=UNUSABLE_PASSWORD_PREFIX)
    return User.objects.filter(can_log_in, is_staff=True)


MAIL, OPERATOR = "mail", "operator"  # that show an address to be a person's own

# Whom the list of people shows on request, beside those who wait.
WAITING = "waiting"
KINDS = {
    "organizers": Q(is_organizer=True),
    "operators": Q(is_staff=True),
    "invited": Q(is_active=True, password__startswith=UNUSABLE_PASSWORD_PREFIX),
    "deactivated": Q(is_active=False),
}


def find_people(words: str = "", kind: str = "") -> QuerySet[User]:
    """Accounts by name, for an operator.

    Args:
        words: part of the name or of the address.
        kind: `WAITING` or one of `KINDS`; all people where it is another word.
    """
    named = Q(name__icontains=words) | Q(email__icontains=words)
    chosen = waiting() if kind == WAITING else User.objects.filter(KINDS.get(kind, Q()))
    return chosen.filter(named).order_by(Lower("name"), "email", "pk").prefetch_related("emailaddress_set")


def waiting() -> QuerySet[User]:
    """Return who waits for a link that no mail brings: to confirm an address, or to choose a new password."""
    wait = Q(waits_for_link_since__isnull=False)
    if not sends_mail():
        wait |= Q(Exists(EmailAddress.objects.filter(user=OuterRef("pk"), verified=False)))
    return User.objects.filter(wait, is_active=True)


def unconfirmed_address_of(user: User) -> EmailAddress | None:
    """Return the address of this person that is not confirmed, also one that is to replace the present one."""
    return EmailAddress.objects.filter(user=user, verified=False).order_by("-pk").first()


def vouching_for(user: User) -> AuditEvent | None:
    """Return the invitation that alone vouches for this address, made by its `actor`; None where more shows it."""
    rows = AuditEvent.objects.filter(action="account.address-confirmed", data__address=user.email)
    newest = rows.filter(subject_type=user._meta.label_lower, subject_id=str(user.pk)).select_related("actor").first()
    return newest if newest and newest.data.get("shown_by", OPERATOR) not in (MAIL, OPERATOR) else None


def find_organizers(addresses: Iterable[str], *, by: User, present: Collection[User]) -> list[User]:
    """Return the accounts of the people who are to organise an edition.

    An address that only an invitation vouches for makes nobody an organizer, whoever invited whom, until an operator
    has confirmed it; invitations of operators and of those who organise the edition are enough.

    Args:
        present: who organises it now, whose addresses are asked for no more.

    Raises:
        ProblemsError: addresses without an account, or that are not known to be the person's.
    """
    people, problems = [], []
    for address in dict.fromkeys(addresses):
        person = User.objects.filter(email__iexact=address).first()
        if person is None:
            problems.append(f"No account has the address {address}. Ask this person to make one first.")
        elif person not in (by, *present) and not _is_known(person, (by, *present)):
            problems.append(
                f"Only an invitation vouches that the address {address} is that of {person}; no mail has shown it. Ask "
                "an operator to confirm it on the person’s page under People."
            )
        people += [person] if person else []
    if problems:
        raise ProblemsError(problems)
    if by not in people:
        raise ProblemsError("You cannot remove yourself; another organizer can.")
    return list(dict.fromkeys(people))


def _is_known(person: User, organizers: Collection[User]) -> bool:
    """Return whether a mail, an operator or one of these people showed that the address is the person's."""
    event = vouching_for(person)
    return event is None or (event.actor is not None and (event.actor.is_staff or event.actor in organizers))


def person_with(pk: int) -> User:
    return get_object_or_404(User, pk=pk)


def tokens_for(user: User) -> QuerySet[AccessToken]:
    """Return one's tokens that were not revoked, newest first."""
    return AccessToken.objects.filter(user=user, revoked_at=None).select_related("user")


def token_for(user: User, pk: int) -> AccessToken:
    return get_object_or_404(tokens_for(user), pk=pk)


def lacks_second_factor(user: Any) -> bool:
    """Return whether somebody organises or operates here and logs in by a password alone."""
    if not user.is_authenticated or not (user.is_organizer or user.is_staff or user.organized_editions.exists()):
        return False
    return not Authenticator.objects.filter(user=user, type=Authenticator.Type.TOTP).exists()


def summary_for(user: User, now: datetime) -> dict[str, Any]:
    """Return how an account is secured."""
    pending = EmailAddress.objects.get_new(user)
    factors = {factor.type: factor for factor in Authenticator.objects.filter(user=user)}
    app, codes = factors.get(Authenticator.Type.TOTP), factors.get(Authenticator.Type.RECOVERY_CODES)
    return {
        "pending_address": pending.email if pending else "",
        "second_factor_since": app.created_at if app else None,
        "recovery_codes_left": len(codes.wrap().get_unused_codes()) if codes else 0,
        "good_tokens": sum(is_good(token, now) for token in tokens_for(user)),
    }
