"""One's own account: name, tokens, mails, and the picture from which an app takes the second factor."""

from __future__ import annotations

from typing import Any, cast

from allauth.account.utils import perform_login
from allauth.core.internal import ratelimit
from allauth.mfa.adapter import get_adapter
from allauth.mfa.totp.internal.auth import SECRET_SESSION_KEY
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from portal.accounts import selectors, services, tokens
from portal.accounts.access import member_action, member_page, member_read
from portal.accounts.first_account import is_first_secret, make_first_account, take_first_account
from portal.accounts.forms import FirstAccountForm, NameForm, NotificationsForm, TokenForm
from portal.accounts.models import User
from portal.core.fields import posted


@require_http_methods(["GET", "HEAD", "POST"])
def first_account(request: HttpRequest, secret: str) -> HttpResponse:
    """Where the first person makes the account of operator and organizer; not found once that is done."""
    counted = {"config": {"first_account": "30/m/ip"}, "app": "portal.accounts", "action": "first_account"}
    if ratelimit.consume(request, **counted) is None:
        return render(request, "429.html", status=429)
    if not is_first_secret(secret):
        raise Http404
    form = None if request.user.is_authenticated else FirstAccountForm(posted(request))
    if request.method != "POST" or (form and not form.is_valid()):
        return render(request, "accounts/first.html", {"form": form}, status=422 if form and form.errors else 200)
    try:
        if form is None:
            take_first_account(secret=secret, user=cast("User", request.user))
            return redirect("home")
        user = make_first_account(secret=secret, **form.account_fields())
    except LookupError as error:
        raise Http404 from error
    return perform_login(request, user)


@member_page
def profile(request: HttpRequest) -> HttpResponse:
    """Who one is here and how the account is secured; the name can be changed."""
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
    """One's access tokens; a new one is answered with its secret, on this one page and never again."""
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


@member_action
def revoke_token(request: HttpRequest, pk: int) -> HttpResponse:
    user: Any = request.user
    token = tokens.revoke_token(token=selectors.token_for(user, pk), by=user, now=timezone.now())
    messages.success(request, f"The token “{token.name}” is revoked: no program can use it any more.")
    return redirect("accounts:tokens")


@member_page
def notifications(request: HttpRequest) -> HttpResponse:
    """Which mails one wants."""
    user: Any = request.user
    form = NotificationsForm(request.POST if request.method == "POST" else None, user=user)
    if form.is_valid():
        services.choose_notifications(user=user, wanted=form.cleaned_data["wanted"], offered=form.offered)
        messages.success(request, "Your choice is kept.")
        return redirect("accounts:notifications")
    return render(request, "accounts/notifications.html", {"form": form}, status=422 if form.errors else 200)


@member_read
def second_factor_picture(request: HttpRequest) -> HttpResponse:
    """The QR code of the second factor that is being set up in this session; nowhere else, and kept by no cache."""
    secret = request.session.get(SECRET_SESSION_KEY)
    if not secret:
        raise Http404
    adapter: Any = get_adapter()
    user: Any = request.user
    svg = adapter.build_totp_svg(adapter.build_totp_url(user, secret))
    return HttpResponse(svg, content_type="image/svg+xml")
