"""Pages of studies whose every name is as long as it may be: nothing reaches out of the window at either width."""

import pytest
from django.urls import reverse
from django.utils import timezone

from listening.app.monitor.services import create_rule
from listening.app.sessions.block_leases import end_session
from listening.app.studies import services
from tests.listening.factories import make_session
from tests.listening.heard import make_draft, make_heard_edition, make_prepared
from tests.portal.factories import make_organizer

WORDS = "Disentangled representations of speakers and content with a differentiable vocoder " * 2
LONG_TITLE = WORDS[:120].strip()
ONE_WORD = "Neural" * 20
OF_A_STUDY = ("detail", "edit", "texts", "design", "extend", "monitor", "exclusions", "export")


@pytest.fixture
def organizer(transactional_db):
    return make_organizer(name="Wolfeschlegelsteinhausenbergerdorff " * 3)


@pytest.fixture
def edition(organizer):
    """Systems, data sets and the edition itself with names of the greatest length; half of them cannot be broken."""
    edition = make_heard_edition(organizer=organizer, title=ONE_WORD, speakers=6, utterances=10)
    for number, system in enumerate(edition.systems.order_by("pk")):
        system.title = (LONG_TITLE, ONE_WORD)[number % 2]
        system.label = f"T{number}-" + "p" * 37
        system.save()
    for data_set in edition.corpus.data_sets.all():
        data_set.name = (data_set.name + "_of_the_clean_and_other_parts_with_every_session" * 2)[:80]
        data_set.save()
    return edition


def name_of(letter):
    return letter * 60


def look(page, check_page, study, names, *more):
    for name in names:
        page.goto(reverse(f"studies:{name}", args=[study.name, *more]))
        check_page(page, f"study-long-{name}-{study.state}", schemes=("light",), with_axe=False)


def test_pages_of_a_draft_with_long_names(organizer, new_page, check_page, edition):
    page = new_page(organizer)
    draft = make_draft(edition, title=ONE_WORD, name=name_of("d"))
    page.goto("/studies/")
    check_page(page, "study-long-list", schemes=("light",), with_axe=False)
    page.goto("/studies/new/")
    check_page(page, "study-long-new", schemes=("light",), with_axe=False)
    look(page, check_page, draft, ("detail", "edit", "design"))


def test_pages_of_a_running_study_with_long_names(organizer, new_page, check_page, edition):
    page = new_page(organizer)
    study = make_prepared(edition, title=ONE_WORD, name=name_of("s"))
    services.launch_study(study=study, by=organizer, now=timezone.now())
    study.refresh_from_db()
    session = make_session(study)
    end_session(session, "expired", timezone.now())
    create_rule(study=study, by=organizer, session=session, reason=(ONE_WORD * 4)[:400])
    look(page, check_page, study, OF_A_STUDY)
    look(page, check_page, study, ("session",), session.pk)
    page.goto(reverse("studies:exclusions", args=[study.name]) + "?flag=straight-lining")
    check_page(page, "study-long-exclusion-effect", schemes=("light",), with_axe=False)
