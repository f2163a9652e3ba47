"""The people of the portal, as an operator looks after them: invited, given roles, deactivated and reactivated.

A person who is invited has an account at once, without a password: the link of the invitation chooses one. It is a link
of django-allauth for a new password, so it serves once and for three days.
"""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse

from common.errors import NotPossible
from portal.accounts.models import User
from portal.accounts.selectors import OPERATOR, operators, unconfirmed_address_of, vouching_for
from portal.accounts.services import belongs_to_another, forget_link_request, vouch_for_address
from portal.core import audit
from portal.core.mail import absolute, render_mail

ONLY_OPERATOR = "{} is the only operator who can log in. Make somebody else an operator first."


@transaction.atomic
def invite_person(*, email: str, name: str, is_organizer: bool, is_operator: bool, by: User) -> User:
    """Return an account that waits for its owner to choose a password; the mail is sent by `send_invitation`.

    Raises:
        NotPossible: the address has an account.
    """
    if User.objects.filter(email__iexact=email).exists():
        raise NotPossible(f"{email} has an account. Change its roles on its page.")
    user = User.objects.create_user(email, name=name, **_fields(is_organizer, is_operator))
    vouch_for_address(user)
    audit.record("account.invited", user, actor=by, organizer=is_organizer, operator=is_operator)
    return user


def invitation_address(user: User) -> str:
    """Return the address at which an invited person chooses a password.

    Raises:
        NotPossible: the account has a password, or is deactivated.
    """
    if user.has_usable_password() or not user.is_active:
        raise NotPossible(f"{user} has no open invitation.")
    return _password_address(user)


@transaction.atomic
def confirm_address(*, user: User, by: User, request: HttpRequest) -> None:
    """Take the address of a person as theirs, in place of the link in a mail or where only an invitation vouches.

    Raises:
        NotPossible: it is confirmed already, or belongs to another account.
    """
    address = unconfirmed_address_of(user)
    if address is None and vouching_for(user) is None:
        raise NotPossible(f"The address of {user} is confirmed already.")
    if address is not None:
        if belongs_to_another(address.email, user):
            raise NotPossible(f"{address.email} belongs to another account.")
        get_adapter().confirm_email(request, address)
    email = address.email if address else user.email
    audit.record("account.address-confirmed", user, actor=by, address=email, shown_by=OPERATOR)


@transaction.atomic
def make_password_link(*, user: User, by: User) -> str:
    """Return the address at which a person chooses a new password, for an operator to pass on where no mail arrives.

    Raises:
        NotPossible: the account is deactivated, or has no password yet.
    """
    if not user.is_active or not user.has_usable_password():
        raise NotPossible(f"{user} needs no link for a new password.")
    vouch_for_address(user)
    audit.record("account.password-link-made", user, actor=by)
    return _password_address(user)


@transaction.atomic
def drop_link_request(*, user: User, by: User) -> User:
    """Take somebody from those who wait for a link, such as where it was not they who asked.

    Raises:
        NotPossible: they do not wait.
    """
    if user.waits_for_link_since is None:
        raise NotPossible(f"{user} waits for no link.")
    forget_link_request(user)
    audit.record("account.link-not-needed", user, actor=by)
    return user


def _password_address(user: User) -> str:
    names = {"uidb36": user_pk_to_url_str(user), "key": default_token_generator.make_token(user)}
    return absolute(reverse("account_reset_password_from_key", kwargs=names))


def send_invitation(*, user: User, address: str, by: User) -> None:
    """Mail the address to the invited person.

    Raises:
        OSError, SMTPException: the mail could not be sent.
    """
    mail = render_mail("accounts/mail/invitation.txt", {"person": user, "by": by, "address": address})
    EmailMessage(subject=mail.subject, body=f"{mail.text}\n", to=[user.email]).send()


@transaction.atomic
def change_roles(*, user: User, is_organizer: bool, is_operator: bool, by: User) -> User:
    """Make a person an organizer, an operator, both, or a member without a role.

    Raises:
        NotPossible: nobody would look after the portal any more.
    """
    user = _lock(user)
    if not is_operator:
        _keep_an_operator(user)
    after = _fields(is_organizer, is_operator)
    before = {name: getattr(user, name) for name in after}
    if before == after:
        return user
    for name, value in after.items():
        setattr(user, name, value)
    user.save(update_fields=list(after))
    audit.record("account.roles-changed", user, actor=by, changes=audit.changes(before, after))
    return user


@transaction.atomic
def deactivate_person(*, user: User, by: User) -> User:
    """Close an account: its sessions and access tokens end, what it made stays.

    Raises:
        NotPossible: it is one's own, it is closed already, or nobody would look after the portal any more.
    """
    user = _lock(user)
    if user == by:
        raise NotPossible("You cannot deactivate your own account. Ask another operator.")
    if not user.is_active:
        raise NotPossible(f"The account of {user} is deactivated already.")
    _keep_an_operator(user)
    return _set_active(user, is_active=False, action="account.deactivated", by=by)


@transaction.atomic
def reactivate_person(*, user: User, by: User) -> User:
    """Open an account again, with the roles it had.

    Raises:
        NotPossible: it is open.
    """
    user = _lock(user)
    if user.is_active:
        raise NotPossible(f"The account of {user} is active.")
    return _set_active(user, is_active=True, action="account.reactivated", by=by)


def _set_active(user: User, *, is_active: bool, action: str, by: User) -> User:
    user.is_active = is_active
    user.save(update_fields=["is_active"])
    audit.record(action, user, actor=by)
    return user


def _fields(is_organizer: bool, is_operator: bool) -> dict[str, Any]:
    return {"is_organizer": is_organizer, "is_staff": is_operator, "is_superuser": is_operator}


def _lock(user: User) -> User:
    """Return the person as they stand now; two who take the role of operator from each other wait here."""
    locked = User.objects.select_for_update().filter(Q(is_staff=True) | Q(pk=user.pk)).order_by("pk")
    return {one.pk: one for one in locked}[user.pk]


def _keep_an_operator(user: User) -> None:
    if list(operators().values_list("pk", flat=True)) == [user.pk]:
        raise NotPossible(ONLY_OPERATOR.format(user))
