"""One's own account, the first account of a portal, and for operators the people who have one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from allauth.account.models import EmailConfirmationHMAC
from allauth.account.utils import perform_login
from allauth.core.internal import ratelimit
from allauth.mfa.adapter import get_adapter
from allauth.mfa.totp.internal.auth import SECRET_SESSION_KEY
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from common.errors import NotPossible
from portal.accounts import people, selectors, services, tokens
from portal.accounts.access import (
    member_page,
    member_read,
    operator_action,
    operator_page,
    operator_read,
)
from portal.accounts.first_account import is_first_secret, make_first_account, take_first_account, was_just_used
from portal.accounts.forms import (
    FirstAccountForm,
    InvitePersonForm,
    NameForm,
    NotificationsForm,
    RolesForm,
    TokenForm,
)
from portal.accounts.models import User
from portal.accounts.pages import people_rows, roles_in_words, state_cell
from portal.core.confirmation import ask_first
from portal.core.errors import error_page
from portal.core.fields import posted, show_form
from portal.core.mail import NOT_SENT, absolute

PEOPLE_ON_A_PAGE = 50


@require_http_methods(["GET", "HEAD", "POST"])
def first_account(request: HttpRequest, secret: str) -> HttpResponse:
    """Show the form by which the first person makes the account of operator and organizer; not found afterwards."""
    counted = {"config": {"first_account": "30/m/ip"}, "app": "portal.accounts", "action": "first_account"}
    if ratelimit.consume(request, **counted) is None:
        return error_page(request, 429)
    if not is_first_secret(secret):
        return _first_account_is_made(request, secret)
    form = None if request.user.is_authenticated else FirstAccountForm(posted(request))
    if request.method != "POST" or (form and not form.is_valid()):
        return render(request, "accounts/first.html", {"form": form}, status=422 if form and form.errors else 200)
    try:
        if form is None:
            take_first_account(secret=secret, user=cast("User", request.user))
            return redirect("home")
        user = make_first_account(secret=secret, **form.account_fields())
    except LookupError:
        return _first_account_is_made(request, secret)
    return perform_login(request, user)


def _first_account_is_made(request: HttpRequest, secret: str) -> HttpResponse:
    """Answer where the address opens nothing any more: who sent the form twice, by a double click, has the account
    already."""
    if request.method != "POST" or not was_just_used(secret):
        raise Http404
    if request.user.is_authenticated:
        return redirect("home")
    messages.info(request, "The first account is made already. Log in with it.")
    return redirect_to_login(reverse("home"))


@member_page
def profile(request: HttpRequest) -> HttpResponse:
    """Show the account of the person and how it is secured; the name can be changed."""
    user: Any = request.user
    form = NameForm(request.POST if request.method == "POST" else None, initial={"name": user.name})
    if form.is_valid():
        services.rename(user=user, name=form.cleaned_data["name"])
        messages.success(request, "Your name is changed.")
        return redirect("accounts:profile")
    context = {"form": form, "summary": selectors.summary_for(user, timezone.now())}
    return render(request, "accounts/profile.html", context, status=422 if form.errors else 200)


@member_page
def token_list(request: HttpRequest) -> HttpResponse:
    """Show one's access tokens; a new one is answered with its secret, on this one page and never again."""
    user: Any = request.user
    form = TokenForm(request.POST if request.method == "POST" else None, user=user)
    context: dict[str, Any] = {"form": form, "now": timezone.now()}
    if form.is_valid():
        wanted = {"name": form.cleaned_data["name"], "scopes": form.cleaned_data["scopes"]}
        expires_at = form.expires_at(context["now"])
        context["new"], context["secret"] = tokens.create_token(user=user, expires_at=expires_at, **wanted)
        context["form"] = TokenForm(user=user)
    context["tokens"] = selectors.tokens_for(user)
    return render(request, "accounts/tokens.html", context, status=422 if form.errors else 200)


@member_page
def revoke_token(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask, then revoke."""
    user: Any = request.user
    token = selectors.token_for(user, pk)
    if request.method != "POST":
        trail = [("Your account", reverse("accounts:profile")), ("Access tokens", reverse("accounts:tokens"))]
        question = f"Revoke the token “{token.name}”?"
        return ask_first(request, "accounts/revoke_token.html", question, action="Revoke", trail=trail)
    tokens.revoke_token(token=token, by=user, now=timezone.now())
    messages.success(request, f"The token “{token.name}” is revoked: no program can use it any more.")
    return redirect("accounts:tokens")


@member_page
def notifications(request: HttpRequest) -> HttpResponse:
    """Show the form that chooses which mails one gets."""
    user: Any = request.user
    form = NotificationsForm(request.POST if request.method == "POST" else None, user=user)
    if form.is_valid():
        services.choose_notifications(user=user, wanted=form.cleaned_data["wanted"], offered=form.offered)
        messages.success(request, "Your choice is saved.")
        return redirect("accounts:notifications")
    return render(request, "accounts/notifications.html", {"form": form}, status=422 if form.errors else 200)


@member_read
def second_factor_picture(request: HttpRequest) -> HttpResponse:
    """Return the QR code of the second factor that is being set up in this session; nowhere else, and kept by no
    cache."""
    secret = request.session.get(SECRET_SESSION_KEY)
    if not secret:
        raise Http404
    adapter: Any = get_adapter()
    user: Any = request.user
    svg = adapter.build_totp_svg(adapter.build_totp_url(user, secret))
    return HttpResponse(svg, content_type="image/svg+xml")


@operator_read
def people_list(request: HttpRequest) -> HttpResponse:
    """Everybody who has an account, by name, role or state on request."""
    words, kind = request.GET.get("q", "").replace("\0", "").strip(), request.GET.get("show", "")
    page = Paginator(selectors.find_people(words, kind), PEOPLE_ON_A_PAGE).get_page(request.GET.get("page"))
    context: dict[str, Any] = {"page": page, "rows": people_rows(page.object_list), "words": words, "kind": kind}
    context |= {"kinds": (selectors.WAITING, *selectors.KINDS), "waiting": selectors.waiting().count()}
    return render(request, "people/list.html", context)


@operator_page
def invite_person(request: HttpRequest) -> HttpResponse:
    by: Any = request.user
    form = InvitePersonForm(posted(request))
    invited = form.invite(by=by) if form.is_valid() else None
    return show_form(request, "people/invite.html", form) if invited is None else _show_invitation(request, invited)


@operator_action
def invite_again(request: HttpRequest, pk: int) -> HttpResponse:
    return _show_invitation(request, selectors.person_with(pk))


@operator_page
def person(request: HttpRequest, pk: int) -> HttpResponse:
    """Show an account: its roles, which can be changed, and its state."""
    chosen = selectors.person_with(pk)
    roles = [role for role, has in (("organizer", chosen.is_organizer), ("operator", chosen.is_staff)) if has]
    form = RolesForm(posted(request), initial={"roles": roles})
    if form.is_valid():
        return _act(request, pk, people.change_roles, "The roles of {} are saved.", **form.chosen_roles())
    context = {"person": chosen, "state": state_cell(chosen), "roles": roles_in_words(chosen)}
    context["vouching"] = selectors.vouching_for(chosen)
    if (unconfirmed := selectors.unconfirmed_address_of(chosen)) is not None:
        key = EmailConfirmationHMAC.create(unconfirmed).key
        context |= {"unconfirmed": unconfirmed, "link": absolute(reverse("account_confirm_email", args=[key]))}
    return show_form(request, "people/person.html", form, **context)


@operator_action
def confirm_address(request: HttpRequest, pk: int) -> HttpResponse:
    """Confirm the address of a person in place of the link in a mail."""
    by: Any = request.user
    try:
        people.confirm_address(user=selectors.person_with(pk), by=by, request=request)
    except NotPossible as reason:
        messages.error(request, str(reason))
    return redirect("people:person", pk)


@operator_action
def password_link(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a link for a new password, to be passed on where no mail arrives."""
    chosen = selectors.person_with(pk)
    by: Any = request.user
    try:
        address = people.make_password_link(user=chosen, by=by)
    except NotPossible as reason:
        messages.error(request, str(reason))
        return redirect("people:person", pk)
    return render(request, "people/invited.html", {"person": chosen, "address": address})


@operator_action
def no_link(request: HttpRequest, pk: int) -> HttpResponse:
    return _act(request, pk, people.drop_link_request, "{} does not wait for a link any more.")


@operator_action
def deactivate(request: HttpRequest, pk: int) -> HttpResponse:
    return _act(request, pk, people.deactivate_person, "The account of {} is deactivated.")


@operator_action
def reactivate(request: HttpRequest, pk: int) -> HttpResponse:
    return _act(request, pk, people.reactivate_person, "The account of {} is active again.")


def _act(request: HttpRequest, pk: int, service: Callable[..., Any], said: str, **given: Any) -> HttpResponse:
    """Do it and say so, or say why it is not possible; either way on the page of the person."""
    chosen = selectors.person_with(pk)
    try:
        messages.success(request, said.format(service(user=chosen, by=request.user, **given)))
    except NotPossible as reason:
        messages.error(request, str(reason))
    return redirect("people:person", pk)


def _show_invitation(request: HttpRequest, invited: User) -> HttpResponse:
    """Mail the link of an invitation; where no mail can be sent, the page shows it, this once."""
    by: Any = request.user
    try:
        address = people.invitation_address(invited)
        people.send_invitation(user=invited, address=address, by=by)
    except NotPossible as reason:
        messages.error(request, str(reason))
    except NOT_SENT:
        return render(request, "people/invited.html", {"person": invited, "address": address, "is_mail_down": True})
    else:
        if not settings.MAIL_SERVER:
            return render(request, "people/invited.html", {"person": invited, "address": address})
        messages.success(request, f"An invitation is on its way to {invited.email}.")
    return redirect("people:person", invited.pk)
