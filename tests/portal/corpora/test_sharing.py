"""Which organizers see and hear a corpus, and what was made of it and done with it."""

import pytest
from django.urls import reverse

from portal.accounts.models import User
from portal.challenges.job_pages.selectors import jobs_for
from portal.challenges.models import Corpus
from portal.challenges.selectors import corpora_for
from portal.core.models import AuditEvent
from portal.corpora import services
from portal.corpora.services import save_corpus, start_import
from portal.jobs.kinds import JobFailure
from portal.jobs.services import NotPossible
from portal.submissions.rules import Relation
from portal.submissions.selectors import relation_to, systems_for
from tests.portal.factories import client_of, make_corpus, make_edition, make_operator, make_organizer, make_system

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return make_organizer()


@pytest.fixture
def corpus(owner):
    return make_corpus(created_by=owner, is_shared=False)


def addresses(corpus, system):
    names = ("detail", "speakers", "utterances")
    utterance = corpus.utterances.first()
    file = system.submissions.get().files.first()
    return [
        *(reverse(f"corpora:{name}", args=[corpus.name]) for name in names),
        reverse("corpora:utterance", args=[corpus.name, utterance.name]),
        reverse("corpora:data-set", args=[corpus.name, file.data_set.name]),
        reverse("systems:new", args=[corpus.name]),
        reverse("systems:detail", args=[system.name]),
        reverse("systems:compare", args=[system.name, file.pk]),
        reverse("systems:new-attack", args=[system.name]),
    ]


def test_corpus_is_its_owners_and_its_editions(owner, corpus):
    other, editor = make_organizer(), make_organizer()
    make_edition(make_corpus("elsewhere", is_shared=False), organizers=[other])
    make_edition(corpus, organizers=[editor])
    system = make_system(corpus)
    for address in addresses(corpus, system):
        found = {who: client_of(who).get(address).status_code for who in (owner, editor, other, make_operator())}
        assert list(found.values()) == [200, 200, 404, 404], address
    for who in (owner, editor):
        assert corpus in corpora_for(who)
        assert (system in systems_for(who), relation_to(who, system)) == (True, Relation.ORGANIZER)
    assert (system in systems_for(other), relation_to(other, system)) == (False, Relation.OTHER)
    for page in ("/", "/corpora/", "/systems/", "/editions/new/"):
        assert "tones" not in client_of(other).get(page).content.decode(), page


def test_owner_shares_a_corpus_and_takes_it_back(owner, corpus):
    other = make_organizer()
    page, address = corpus.get_absolute_url(), reverse("corpora:share", args=[corpus.name])
    assert client_of(other).post(address, {"shared": "on"}).status_code == 404
    assert "Share with all organizers" in client_of(owner).get(page).content.decode()
    client_of(owner).post(address, {"shared": "on"})
    assert client_of(other).get(page).status_code == 200
    assert "Only the owner" in client_of(other).post(address, follow=True).content.decode()
    assert client_of(other).get(page).status_code == 200
    client_of(owner).post(address)
    assert client_of(other).get(page).status_code == 404
    actions = AuditEvent.objects.filter(action__startswith="corpus.").order_by("pk").values_list("action", "actor")
    assert list(actions) == [("corpus.shared", owner.pk), ("corpus.unshared", owner.pk)]


def test_jobs_follow_their_corpus(owner, corpus):
    other = make_organizer()
    job = start_import(folder="/speech", name="tones", by=owner, run_here=True)
    first = start_import(folder="/speech", name="new", by=other, run_here=True)
    assert set(jobs_for(owner)) == {job}
    assert set(jobs_for(other)) == {first}, "an import that has made no corpus yet is its starter's"
    assert set(jobs_for(make_operator())) == {job, first}
    Corpus.objects.update(is_shared=True)
    assert set(jobs_for(other)) == {job, first}


def test_nobody_adds_to_anothers_corpus(corpus):
    other = make_organizer()
    with pytest.raises(NotPossible, match="taken by another organizer"):
        start_import(folder="/speech", name="tones", by=other)
    with pytest.raises(JobFailure, match="taken meanwhile"):
        save_corpus(None, {}, name="tones", source="/speech", is_synthetic=False, is_shared=True, by=other)
    assert not Corpus.objects.get().is_shared


def test_edition_takes_no_corpus_that_its_maker_may_not_see(corpus):
    other = client_of(make_organizer())
    given = {"title": "A", "name": "a", "protocol": "2022", "corpus": corpus.name, "submissions_per_team": 1}
    given |= {"largest_archive_gb": 1, "organizers": User.objects.latest("pk").email}
    answer = other.post("/editions/new/", given)
    assert (answer.status_code, "Choose from the list" in answer.content.decode()) == (422, True)


def test_listed_edition_leads_no_other_organizer_to_its_corpus(owner, corpus):
    edition = make_edition(corpus, organizers=[owner])
    told = {who: client_of(who).get(edition.get_absolute_url()).content.decode() for who in (owner, make_organizer())}
    assert [f'href="{corpus.get_absolute_url()}"' in page for page in told.values()] == [True, False]


def test_operator_names_the_owner_without_seeing_speech(corpus):
    heir = make_organizer()
    client = client_of(make_operator())
    address = f"/admin/challenges/corpus/{corpus.pk}/change/"
    assert client.get(address).status_code == 200
    client.post(address, {"created_by": heir.pk})
    assert corpora_for(heir).get() == corpus


@pytest.mark.django_db
def test_name_that_differs_in_capitals_alone_is_no_other_corpus():
    tones, others = make_corpus("tones"), make_corpus("others")
    said = "There is a corpus tones. Type its name as it is to continue it, or choose another name."
    assert (services.import_problem("Tones", None), services.import_problem("tones", None)) == (said, "")
    with pytest.raises(NotPossible, match="The name Tones is taken"):
        services.change_corpus(corpus=others, by=None, name="Tones")
    assert services.change_corpus(corpus=tones, by=None, name="Tones").name == "Tones"
