"""Access tokens, names and mails: what people keep in their own account."""

import hashlib
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from portal.accounts.models import AccessToken
from portal.accounts.tokens import create_token, revoke_token, user_of_token
from portal.core.models import AuditEvent
from tests.portal.factories import make_edition, make_team, make_user

pytestmark = pytest.mark.django_db
NOW = timezone.now()


def make_token(user=None, **fields):
    return create_token(
        **{"user": user or make_user(), "name": "laptop", "scopes": ["read"], "expires_at": None} | fields
    )


# Tokens -------------------------------------------------------------------------------------------


def test_secret_has_its_form_and_only_its_hash_is_kept():
    _, secret = make_token(scopes=["submit", "read"])
    assert re.fullmatch(r"vpp_[A-Za-z0-9_-]{40}", secret)
    kept = AccessToken.objects.values().get()
    assert kept["secret_hash"] == hashlib.sha256(secret.encode()).hexdigest()
    assert (kept["start"], kept["scopes"]) == (secret[:10], ["read", "submit"])
    assert secret not in str([*AccessToken.objects.values(), *AuditEvent.objects.values()])
    assert make_token()[1] != secret
    assert AuditEvent.objects.filter(action="token.created").count() == 2


def test_token_is_good_for_its_owner_until_its_end():
    user = make_user()
    _, secret = make_token(user, expires_at=NOW + timedelta(days=1))
    assert user_of_token(secret, NOW).user == user
    assert user_of_token(secret, NOW + timedelta(days=1) - timedelta(microseconds=1)).user == user
    assert user_of_token(secret, NOW + timedelta(days=1)) is None


def test_wrong_revoked_and_orphaned_tokens_are_no_good():
    user = make_user()
    token, secret = make_token(user)
    for wrong in ("", "vpp_", secret[:-1], secret + "x", secret.upper(), token.secret_hash, token.start, "\x00ü"):
        assert user_of_token(wrong, NOW) is None
    user.is_active = False
    user.save()
    assert user_of_token(secret, NOW) is None
    user.is_active = True
    user.save()
    assert user_of_token(secret, NOW) == token
    revoke_token(token=token, by=user, now=NOW)
    assert user_of_token(secret, NOW) is None


def test_use_is_noted_at_most_once_a_minute(django_assert_num_queries):
    token, secret = make_token()
    moments = [NOW, NOW + timedelta(seconds=59), NOW + timedelta(seconds=60)]
    seen = []
    for moment, queries in zip(moments, (2, 1, 2), strict=True):
        with django_assert_num_queries(queries):
            user_of_token(secret, moment)
        token.refresh_from_db()
        seen.append(token.last_used_at)
    assert seen == [NOW, NOW, NOW + timedelta(seconds=60)]


def test_secret_is_shown_on_one_page_and_never_again(client):
    user = make_user()
    client.force_login(user)
    answer = client.post("/account/tokens/", {"name": "vp on my laptop", "scopes": ["read", "submit"], "days": "30"})
    [secret] = re.findall(r"vpp_[A-Za-z0-9_-]{40}", answer.content.decode())
    assert "no-store" in answer["Cache-Control"]
    token = user_of_token(secret, timezone.now())
    assert (token.user, token.name, token.scopes) == (user, "vp on my laptop", ["read", "submit"])
    assert timedelta(days=29) < token.expires_at - timezone.now() <= timedelta(days=30)
    page = client.get("/account/tokens/").content.decode()
    assert secret not in page
    assert secret[:10] in page


def test_token_is_revoked_on_its_page_by_its_owner_only(client):
    user = make_user()
    token, secret = make_token(user)
    address = f"/account/tokens/{token.pk}/revoke/"
    client.force_login(make_user())
    assert client.post(address).status_code == 404
    assert user_of_token(secret, NOW) is not None
    client.force_login(user)
    assert '<button class="button danger">Revoke</button>' in client.get(address).content.decode()
    assert user_of_token(secret, NOW) is not None
    assert client.post(address).headers["Location"] == "/account/tokens/"
    assert user_of_token(secret, NOW) is None
    assert client.post(address).status_code == 404
    assert secret[:10] not in client.get("/account/tokens/").content.decode()


# Name and mails -----------------------------------------------------------------------------------


def test_token_form_offers_only_what_its_owner_could_do(client):
    edition, person = make_edition(), make_user()
    client.force_login(person)

    def offered():
        return dict(client.get("/account/tokens/").context["form"].fields["scopes"].choices)

    assert set(offered()) == {"read", "submit"}
    answer = client.post("/account/tokens/", {"name": "x", "scopes": ["organize"], "days": "30"})
    assert answer.status_code == 422
    make_team(edition, owner=person)
    assert offered()["organize"] == "organize: manage who belongs to your teams"
    edition.organizers.add(person)
    assert offered()["organize"] == "organize: manage your editions and listening tests, and who belongs to your teams"
