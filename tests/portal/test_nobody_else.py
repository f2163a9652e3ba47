"""Whatever belongs to a team is nobody else's: every address that names something of it, read and written to by
everybody who has nothing to do with it, answers exactly as if there were no such thing.
The addresses are those that the portal has, not a list: one that is added is tried as well, and the test fails where it
names something that the test cannot fill in.
"""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import pairwise, product

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from portal.leaderboard.figures import list_drawings
from portal.leaderboard.selectors import leaderboard_for
from portal.submissions.models import Submission
from tests.portal.api.calls import Api, take_challenge

pytestmark = pytest.mark.django_db

# What is of no team, or is shown to people because it is theirs; each with its reason.
OF_NO_TEAM = {
    "": "pages of the portal, accounts and health; what they show of teams is asked for below",
    "accounts": "one's own account; another's token: accounts/test_tokens",
    "people": "everybody's account, for operators alone: test_access, accounts/test_people",
    "corpora": "corpora of organizers: tests/portal/corpora/test_sharing",
    "deletion": "each kind of thing for each role: deletion/test_deletion",
    "docs": "the documentation and the shipped recipes",
    "downloads": "the program vp, the same for everybody",
    "editions": "the edition itself is public; what is the organizer's: tests/portal/teams/test_access",
    "network-trainings": "of a corpus, for organizers who may see it: systems/test_network_trainings",
    "published": "printed in papers",
    "leaderboard": "public once published: below, and tests/portal/leaderboard",
    "studies": "of an edition's organizers alone, every address and method: tests/listening/studies/test_access; "
    "results are public once published: tests/listening/results/test_result_pages",
    "listeners": "public with the results, once the leaderboard is: tests/listening/results/test_panels",
    "listen": "those who hold the secret of a session or a study; what that shows of teams is nothing: test_access and "
    "tests/listening",
}
PUBLIC_ONCE_PUBLISHED = {
    "systems:detail",
    "systems:values-csv",
    "systems:objective-csv",
    "systems:objective-json",
    "systems:objective-latex",
    "systems:attacks",
    "systems:attacks-csv",
    "systems:attacks-json",
    "systems:recognition",
    "systems:recognition-csv",
    "systems:retrained-csv",
    "api:system",
    "api:values",
    "api:system-attacks",
    "api:system-recognitions",
    "api:system-retrained",
}
NOT_OF_ONE_TEAM = {
    "systems:list",  # the asker's own, asked for below
    "systems:new",
    "systems:edit",  # of who owns its team or organises its edition, and of the operator: deletion/test_deletion
    "jobs:list",  # for organizers and the operator only, who look after the queue together
    "jobs:table",
    "submissions:list",
    "submissions:new",
    "submissions:upload-corpus",  # for organizers, of their own: tests/portal/submissions/test_corpus_uploads
    "teams:invitation",  # anyone who holds its secret
    "uploads:create",
    "api:docs",
    "api:schema",
    "api:me",
    "api:editions",
    "api:edition",
    "api:network-trainings",  # of corpora, for organizers
    "api:expected",
    "api:expected-set",
    "api:requirements",
    "api:data",  # of approved teams that accepted the terms: tests/portal/editions/test_data
    "api:accept-data",
    "api:data-file",
    "api:edition-teams",
    "api:leaderboard",
    "api:publish-leaderboard",
    "api:unpublish-leaderboard",
    "api:freeze-leaderboard",
    "api:unfreeze-leaderboard",
    "api:policy",
    "api:leaderboard-recipe",
    "api:copy-edition",
    "api:recipe",
    "api:audit",
    "api:edition-uploads",  # the asker's own, asked for below
    "api:studies",  # makes a test of recordings of one's own
    "api:study-uploads",  # the same, sent in parts
    "api:edition-studies",  # public once published, as these: tests/listening/results/test_results_api
    "api:study-results",
    "api:study-table",
    "api:teams",
    "api:submissions",
    "api:systems",
    "api:proposed-recipe",
    "api:engines",  # what the portal knows, of nobody
    "api:nothing",
}
LISTS = (
    "/systems/",
    "/api/me",
    "/api/teams/",
    "/api/submissions/",
    "/api/systems/",
    "/api/editions/vpc/uploads/",
    "/editions/",
    "/editions/vpc/",
    "/studies/",
)
OF_TEAMS = {
    "team",
    "decide-team",
    "leave-team",
    "withdraw-team",
    "release-team",
    "remove-member",
    "transfer-team",
    "invitations",
    "revoke-invitation",
}
NO_UUID = "00000000-0000-0000-0000-000000000000"
# What lets a request through to the object, so that it is the object that is not found.
WITH_TUS = {"tus-resumable": "1.0.0", "upload-offset": "4"}
PART = "application/offset+octet-stream"
SEES_EVERY_JOB = ("operator",)
READ_AND_WRITE = ("get", "post")
# Who reads and writes where the leaderboard is published.
MEETS_WHAT_IS_PUBLISHED = {"rival by session", "stranger by token", "other organizer by session", "visitor"}


def patterns(resolver=None, namespace="", given=()):
    """Every address of the portal that has a name: name, and its arguments."""
    for one in (resolver or get_resolver()).url_patterns:
        parts = [*given, *one.pattern.converters]
        if isinstance(one, URLResolver):
            if one.namespace != "admin":
                yield from patterns(one, f"{one.namespace}:" if one.namespace else namespace, parts)
        elif isinstance(one, URLPattern):
            yield f"{namespace}{one.name}", parts


@pytest.fixture(params=["hidden", "published"])
def challenge(request, once):
    challenge = take_challenge(once)
    if request.param == "published":
        challenge.publish()
    return challenge


def names_of(challenge):
    """What the parts of addresses are called: what exists, and what does not."""
    real = {
        "submissions": {
            "pk": challenge.submission.pk,
            "other": challenge.submission.pk,
            "document": challenge.submission.documents.get().pk,
            "run": challenge.run.pk,
        },
        "uploads": {"pk": challenge.upload.pk},
        "jobs": {"pk": challenge.run.job_id},
        "systems": {
            "name": challenge.system.name,
            "data_set": "tones_enrolls",
            "pk": challenge.file.pk,
            "corpus": challenge.edition.corpus.name,
            "training": challenge.training.pk,
            "seed": 1,
            "extension": "svg",
            "run": challenge.attack.pk,
            "score_set": challenge.attack.score_sets.order_by("pk").first().pk,
        },
        "teams": {
            "pk": challenge.team.pk,
            "invitation": challenge.invitation.pk,
            "membership": challenge.team.memberships.get(user=challenge.member).pk,
        },
    }
    unknown = {
        "submissions": {"pk": 999_999, "other": 999_998, "document": 999_997, "run": 999_996},
        "uploads": {"pk": NO_UUID},
        "jobs": {"pk": NO_UUID},
        "systems": {
            "name": "vpc-t99-p1",
            "data_set": "tones_nothing",
            "pk": 999_999,
            "corpus": "nothing",
            "training": 999_998,
            "seed": 9,
            "extension": "svg",
            "run": 999_997,
            "score_set": 999_996,
        },
        "teams": {"pk": 999_999, "invitation": 999_998, "membership": 999_997},
    }
    return real, unknown


def kind_of(name):
    """Which of these a name of an address is about."""
    namespace, _, last = name.rpartition(":")
    if namespace != "api":
        return {"submit-upload": "uploads", "discard-upload": "uploads"}.get(last, namespace)
    if last in OF_TEAMS:
        return "teams"
    of_systems = {"system", "values", "files", "system-attacks", "system-recognitions", "system-retrained"}
    return "systems" if last in of_systems else "submissions"


def addresses(challenge):
    """Every address of something that is the team's, as it is and as it would be of something that does not exist."""
    real, unknown = names_of(challenge)
    found = {}
    for name, parts in patterns():
        namespace = name.rpartition(":")[0]
        if namespace in OF_NO_TEAM or name in NOT_OF_ONE_TEAM:
            continue
        kind = kind_of(name)
        assert set(parts) <= set(real[kind]), f"{name}: say here what {set(parts) - set(real[kind])} are called"
        assert parts, f"{name} names nothing: is it of one team?"
        pair = [reverse(name, kwargs={part: names[kind][part] for part in parts}) for names in (real, unknown)]
        if name == "api:files":
            pair = [f"{address}?data_set=tones_enrolls" for address in pair]
        found[name] = tuple(pair)
    return found


def seen(response, address):
    """Everything of an answer that its asker meets, without what differs at each request and the address asked for."""
    text = b"".join(response.streaming_content) if response.streaming else response.content
    text = re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", text.decode())
    headers = {key: value for key, value in response.items() if key not in {"Content-Length", "Set-Cookie"}}
    where = address.partition("?")[0]
    told = {key: value.replace(where, "ADDRESS") for key, value in headers.items()}
    return response.status_code, text.replace(where, "ADDRESS"), told


def ask(client, method, address):
    """A request as a person with the right would send it."""
    if "/api/uploads/" in address:
        body = {"content_type": PART} if method in {"post", "put", "patch"} else {}
        return getattr(client, method)(address, headers=WITH_TUS, **body)
    body = {"content_type": "application/json"} if method in {"post", "put", "patch"} and "/api/" in address else {}
    return getattr(client, method)(address, **body)


def askers(challenge):
    """How everybody asks who has nothing to do with the team: by session and by token."""
    for who, user in challenge.people().items():
        client = Client(raise_request_exception=False)
        client.force_login(user)
        yield f"{who} by session", client
        yield f"{who} by token", Api(user).client
    yield "visitor", Client(raise_request_exception=False)


@pytest.mark.parametrize("challenge", ["hidden"], indirect=True)
def test_walk_meets_every_kind_of_address(challenge):
    found = addresses(challenge)
    assert {kind_of(name) for name in found} == {"submissions", "uploads", "systems", "teams", "jobs"}
    assert len(found) > 50
    unused = NOT_OF_ONE_TEAM - {name for name, _ in patterns()}
    assert unused == set()


@pytest.mark.usefixtures("plain_refusals")
@pytest.mark.parametrize("challenge", ["hidden"], indirect=True)
def test_what_is_a_teams_looks_to_others_as_if_it_were_not(challenge):
    """Pages are asked for by session and the API by token; the visitor asks for both."""
    before = list(Submission.objects.values()), list(challenge.team.memberships.values())
    named = addresses(challenge)
    for who, client in askers(challenge):
        for name, (there, nowhere) in named.items():
            if kind_of(name) == "jobs" and who.startswith(SEES_EVERY_JOB):
                continue
            if who != "visitor" and who.endswith("by token") != name.startswith(("api:", "uploads:")):
                continue
            for method in READ_AND_WRITE:
                first, second = (ask(client, method, address) for address in (there, nowhere))
                assert seen(first, there) == seen(second, nowhere), f"{who}: {method} {name}"
                assert first.status_code in {302, 401, 404, 405}, f"{who}: {method} {name}"
                if first.status_code == 302:
                    assert first.url.startswith("/log-in/"), f"{who}: {method} {name}"
    assert (list(Submission.objects.values()), list(challenge.team.memberships.values())) == before


@pytest.mark.usefixtures("plain_refusals")
@pytest.mark.parametrize("challenge", ["published"], indirect=True)
@pytest.mark.parametrize("why", ["frozen before", "held back"])
def test_what_a_published_leaderboard_does_not_show_is_hidden_everywhere(challenge, why):
    """A frozen one does not show what was evaluated later, and none what an organizer holds back."""
    if why == "held back":
        Submission.objects.filter(pk=challenge.submission.pk).update(is_held=True)
    else:
        challenge.edition.frozen_at = challenge.submission.evaluated_at - timedelta(days=1)
        challenge.edition.save()
    named = addresses(challenge)
    board = [reverse(f"leaderboard:{name}", args=["vpc"]) for name in ("detail", "csv", "json", "latex")]
    board += [reverse("api:leaderboard", args=["vpc"])]
    for who, client in askers(challenge):
        if who not in MEETS_WHAT_IS_PUBLISHED:
            continue
        for name in sorted(PUBLIC_ONCE_PUBLISHED):
            there, nowhere = named[name]
            first, second = client.get(there), client.get(nowhere)
            assert seen(first, there) == seen(second, nowhere), f"{who}: {name}"
        for address in board:
            text = client.get(address).content.decode()
            assert [word for word in ("T01-p1", "Alder") if word in text] == [], f"{who}: {address}"


@pytest.mark.usefixtures("plain_refusals")
@pytest.mark.parametrize("challenge", ["published"], indirect=True)
def test_every_figure_of_a_leaderboard_is_hidden_before_it_is_published(challenge):
    figures = list(list_drawings(leaderboard_for(challenge.rival, "vpc")))
    assert len(figures) > 2
    type(challenge.edition).objects.update(published_at=None)
    for who, client in askers(challenge):
        for figure, extension in product([*figures, "nothing"], ("svg", "png", "pdf")):
            pair = [reverse("leaderboard:figure", args=[name, figure, extension]) for name in ("vpc", "nothing-here")]
            there, nowhere = (client.get(address) for address in pair)
            assert seen(there, pair[0]) == seen(nowhere, pair[1]), f"{who}: {figure}.{extension}"


@pytest.mark.usefixtures("plain_refusals")
@pytest.mark.parametrize("challenge", ["hidden"], indirect=True)
def test_its_own_people_meet_it(challenge):
    """The walk would prove nothing if nobody got through."""
    client = Client(raise_request_exception=False)
    client.force_login(challenge.owner)
    api = Api(challenge.owner).client
    found = {}
    for name, (there, _) in addresses(challenge).items():
        found[name] = (api if name.startswith(("api:", "uploads:")) else client).get(there).status_code
    only_to_do = {name for name, status in found.items() if status == 405}
    not_theirs = {name for name, status in found.items() if status == 404}
    assert {name for name in not_theirs if not name.startswith("jobs:")} == {
        "teams:decide",
        "systems:voices-csv",
        "systems:new-training",
        "systems:training-attacker",
        "systems:new-attack",
        "systems:new-recognition",
        "systems:description",  # nothing of it is released
        "systems:det",  # nobody listened to it
    }
    assert all(found[name] in {200, 286} for name in set(found) - only_to_do - not_theirs), found


@pytest.mark.usefixtures("plain_refusals")
@pytest.mark.parametrize("challenge", ["hidden"], indirect=True)
def test_number_that_no_database_holds_names_nothing(challenge):
    clients = {"api": Api(challenge.organizer).client, "pages": Client(raise_request_exception=False)}
    clients["pages"].force_login(challenge.organizer)
    known = names_of(challenge)[0]
    asked = 0
    for name, parts in patterns():
        names = {part: value for part, value in known.get(kind_of(name), {}).items() if part in parts}
        for part in [part for part, value in names.items() if isinstance(value, int) and set(names) == set(parts)]:
            address = reverse(name, kwargs=names | {part: 10**30})
            for method in READ_AND_WRITE:
                response = ask(clients["api" if name.startswith("api:") else "pages"], method, address)
                assert response.status_code in {404, 405}, f"{method} {address}"
                asked += 1
    assert asked > 100


def test_lists_hold_nothing_of_other_teams(challenge):
    """Neither names nor numbers of it; on a published leaderboard stand the system and its team, by their names."""
    is_published = challenge.edition.published_at is not None
    hidden = ["hidden-archive", challenge.owner.email, challenge.member.email, "system <b>", str(challenge.upload.pk)]
    if not is_published:
        hidden += [challenge.system.name, "T01-p1", "Alder"]
    for who, client in askers(challenge):
        for address in (*LISTS, f"/api/submissions/?system={challenge.system.name}", "/api/teams/?edition=vpc"):
            text = client.get(address, follow=True).content.decode()
            assert [word for word in hidden if word in text] == [], f"{who}: {address}"
        counted = client.get(f"/api/submissions/?system={challenge.system.name}")
        assert counted.status_code == 401 or counted.json()["count"] == 0, who


@pytest.mark.parametrize("challenge", ["published"], indirect=True)
def test_public_numbers_hold_no_claim_report_or_name_of_a_file(challenge):
    named = addresses(challenge)
    for who, client in askers(challenge):
        if who not in {"rival by session", "visitor"}:
            continue
        for name in sorted(PUBLIC_ONCE_PUBLISHED):
            response = client.get(named[name][0])
            if response.status_code == 200:
                text = response.content.decode()
                held = (
                    "hidden-archive",
                    "its matrices are missing",
                    "reported_in",
                    "system <b>",
                    challenge.owner.email,
                )
                assert [word for word in held if word in text] == [], f"{who}: {name}"


@pytest.mark.usefixtures("plain_refusals")
@pytest.mark.parametrize("challenge", ["published"], indirect=True)
def test_signed_addresses_of_audio_and_figures_serve_their_session_only(challenge):
    owner = Client()
    owner.force_login(challenge.owner)
    page = owner.get(reverse("systems:compare", args=[challenge.system.name, challenge.file.pk]))
    figures = owner.get(reverse("systems:detail", args=[challenge.system.name]))
    media = set(re.findall(r"/media/[^\"?\s]+", page.content.decode() + figures.content.decode()))
    assert len(media) >= 4
    assert {owner.get(address).status_code for address in media} == {200}
    for who, client in askers(challenge):
        for address in media:
            hidden, absent = client.get(address), client.get("/media/nonsense")
            assert hidden.status_code == absent.status_code == 404, f"{who}: {address}"


@pytest.mark.parametrize("challenge", ["published"], indirect=True)
def test_pairs_of_submissions_need_both(challenge):
    """A rival cannot read another team's files by comparing them with their own."""
    from tests.portal.factories import make_team_system
    from tests.portal.submissions.test_pages import make_full

    own = make_full(make_team_system(challenge.rival_team))
    client = Client()
    client.force_login(challenge.rival)
    for first, second in pairwise([own.pk, challenge.submission.pk, own.pk]):
        for name in ("diff", "diff-csv"):
            address = reverse(f"submissions:{name}", args=[first, second])
            absent = reverse(f"submissions:{name}", args=[min(first, 999_999), 999_999])
            assert client.get(address).status_code == client.get(absent).status_code == 404
