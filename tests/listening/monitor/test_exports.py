"""The raw study as files: complete, described column by column, without names of people, locked while it recruits."""

import csv
import io
import json
import zipfile

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from listening.app.models import Study
from listening.app.monitor import services
from listening.app.monitor.exports import LOCK_NOTICE, MEANING, PAYMENTS, ROWS, TABLES
from listening.app.monitor.services import flag_sessions
from portal.core.models import AuditEvent
from portal.core.one_state import read_one_state
from tests.listening.session_factories import (
    add_play,
    answer_trials,
    by_place,
    finish,
    make_finished_session,
    make_session,
    make_study,
)

pytestmark = pytest.mark.django_db
PLATFORM_ID = "5f8b1c9e-platform-person"
SUBMISSION_ID = "5f8b1c9e-platform-submission"


def make_full():
    """A closed study with one of everything that a table holds."""
    study = make_study(evaluators=3, trials=8)
    session = make_finished_session(study, by_place(7))
    session.participant.platform_id = PLATFORM_ID
    session.participant.save()
    session.platform_data = {"session": SUBMISSION_ID, "study": "a-platform-study"}
    session.questionnaire = {"age": "30-39"}
    session.save()
    add_play(session, "muted")
    session.serves.create(trial=session.block.trials.first(), slot="a", first_at=timezone.now())
    session.screening_results.create(
        kind="huggins", secret={"right": [1, 2]}, given=[1, 3], score=1, of=2, is_passed=False
    )
    study.texts.create(kind="consent", language="en", version=1, text='=HYPERLINK("http://evil.example")')
    flag_sessions(timezone.now())
    services.create_rule(
        study=study, by=study.edition.organizers.get(), reason="Rated without listening.", flag="straight-lining"
    )
    make_finished_session(study)
    Study.objects.filter(pk=study.pk).update(state="closed")
    study.refresh_from_db()
    return study


@pytest.fixture
def study(once):
    return once(make_full)


@pytest.fixture
def organizer(study):
    return study.edition.organizers.get()


@pytest.fixture
def get(study, organizer, client):
    client.force_login(organizer)

    def read(name, *more):
        response = client.get(reverse(f"studies:{name}", args=[study.name, *more]))
        assert response.status_code == 200
        return b"".join(response.streaming_content)

    return read


@pytest.fixture
def table(get):
    return lambda name: list(csv.DictReader(io.StringIO(get("export-csv", name).decode())))


@pytest.fixture
def archive(get):
    def read():
        with zipfile.ZipFile(io.BytesIO(get("export-zip"))) as opened:
            return {name: opened.read(name).decode() for name in opened.namelist()}

    return read


# What is in it -------------------------------------------------------------------------------------


def test_rows_have_as_many_cells_as_columns_and_no_table_is_empty(study):
    for name in (*TABLES, PAYMENTS):
        rows = list(ROWS[name](study))
        if name == "sliders":  # no question of this study has any
            continue
        assert rows, name
        assert {len(row) for row in rows} == {len(MEANING[name])}, name


def test_answers_stand_with_their_system_class_and_place(study, table):
    rows = table("answers")
    assert len(rows) == 2 * 8 * 3
    answer = study.sessions.first().answers.select_related("trial__presentation__condition", "trial__block").last()
    row = next(row for row in rows if row["position"] == str(answer.trial.position) and row["task"] == answer.task)
    item = answer.trial.presentation
    assert (row["rating"], row["system"], row["item"]) == ("7", item.condition.code or "original", item.key)
    assert row["is_target"] == ("true" if item.is_target else "false")
    assert (row["is_excluded"], row["session_state"]) == ("true", "finished")
    assert row["received_at"] == answer.received_at.isoformat()
    assert {row["is_excluded"] for row in rows} == {"true", "false"}


def test_text_that_a_spreadsheet_would_run_is_neutralised(table):
    assert table("texts")[0]["text"] == '\'=HYPERLINK("http://evil.example")'


def test_rules_stand_with_the_sessions_they_leave_out(study, organizer, table):
    (rule,) = table("rules")
    assert (rule["flag"], rule["created_by"], rule["revoked_at"]) == ("straight-lining", str(organizer), "")
    (exclusion,) = table("exclusions")
    assert (exclusion["session"], exclusion["is_standing"]) == (str(study.sessions.first().pk), "true")
    assert [row["is_excluded"] for row in table("sessions")] == ["true", "false"]


def test_previews_are_in_no_table(study, archive):
    preview = answer_trials(make_session(study, is_preview=True, block=study.blocks.first()))
    preview.participant.person_key = "the-key-of-a-preview"
    preview.participant.save()
    files = archive()
    assert "the-key-of-a-preview" not in "".join(files.values())
    assert files["tables/answers.csv"].count("\n") == 1 + 2 * 8 * 3


def test_study_without_a_design_can_be_exported(organizer, client):
    study = make_study(evaluators=0, trials=2, state="draft", certificate={}, organizer=organizer)
    client.force_login(organizer)
    response = client.get(reverse("studies:export-zip", args=[study.name]))
    with zipfile.ZipFile(io.BytesIO(b"".join(response.streaming_content))) as opened:
        assert opened.read("tables/answers.csv").count(b"\n") == 1


# People --------------------------------------------------------------------------------------------


def test_criterion_23_no_export_names_a_person_or_a_secret(study, archive, get):
    whole = "".join(archive().values()) + get("export-json").decode()
    whole += "".join(get("export-csv", name).decode() for name in TABLES)
    for session in study.sessions.all():
        assert session.participant.person_key in whole
        assert session.completion_code
        for secret in (session.token, session.withdrawal_code, session.completion_code):
            assert secret not in whole
    for name in (PLATFORM_ID, SUBMISSION_ID, study.link_key):
        assert name not in whole


def test_criterion_23_names_for_paying_are_asked_for_by_a_post_that_is_written_down(study, organizer, client):
    address = reverse("studies:export-csv", args=[study.name, "payments"])
    client.force_login(organizer)
    assert client.get(address).status_code == 405
    assert not AuditEvent.objects.filter(action="study.payments_exported").exists()
    rows = list(csv.DictReader(io.StringIO(b"".join(client.post(address).streaming_content).decode())))
    session = study.sessions.first()
    assert (rows[0]["platform_id"], rows[0]["platform_session"]) == (PLATFORM_ID, SUBMISSION_ID)
    assert (rows[0]["person"], rows[0]["completion_code"]) == (session.participant.person_key, session.completion_code)
    event = AuditEvent.objects.get(action="study.payments_exported")
    assert (event.actor, event.subject_id) == (organizer, str(study.pk))
    other = reverse("studies:export-csv", args=[study.name, "answers"])
    assert client.post(other).status_code == 405


def test_page_leads_to_every_table(study, organizer, client):
    client.force_login(organizer)
    page = client.get(reverse("studies:export", args=[study.name])).content.decode()
    assert all(reverse("studies:export-csv", args=[study.name, name]) in page for name in TABLES)


# Lock ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["open", "paused"])
def test_criterion_25_nothing_in_an_export_of_a_recruiting_study_tells_what_a_system_got(study, archive, get, state):
    Study.objects.filter(pk=study.pk).update(state=state)
    files, told = archive(), json.loads(get("export-json"))
    assert LOCK_NOTICE in files["README.txt"]
    assert told["notice"] == [LOCK_NOTICE]
    (row,) = told["tables"]["study"]
    assert (row["is_locked"], row["seed"]) == (True, None)
    # Which systems are heard is no secret; where they are heard is.
    names = files.pop("tables/systems.csv")
    told["tables"].pop("systems")
    written = "".join(files.values()) + json.dumps(told)
    for code in study.systems.values_list("code", flat=True):
        assert code in names
        assert code not in written
    for key in study.presentations.values_list("key", flat=True):
        assert key not in written


def test_criterion_25_locked_codes_add_up_to_no_system_over_evaluators(study, organizer, get, client):
    """Items stand in several blocks, so nothing about a trial may tell which others are of its system."""
    Study.objects.filter(pk=study.pk).update(state="open")
    rows = json.loads(get("export-json"))["tables"]
    told = [row for name in ("answers", "trials", "items", "samples") for row in rows[name]]
    assert {row["system"] for row in told} == {None}
    assert {row["duration_s"] for row in rows["samples"]} == {None}
    assert [row["item"] for row in rows["items"]] == sorted(row["item"] for row in rows["items"])


# One state -----------------------------------------------------------------------------------------


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_whole_is_of_one_state_and_nobody_waits_for_it():
    """Answers that come while an export is read are not in it, and are not held up."""
    from threading import Thread

    study = make_study(evaluators=2, trials=2)
    answer_trials(make_session(study))
    counts = []

    def answer():
        finish(answer_trials(make_session(study)))
        connection.close()

    with read_one_state():
        counts.append(len(list(ROWS["answers"](study))))
        evaluator = Thread(target=answer)
        evaluator.start()
        evaluator.join(timeout=20)
        assert not evaluator.is_alive()
        counts.append(len(list(ROWS["answers"](study))))
    counts.append(len(list(ROWS["answers"](study))))
    assert counts == [6, 6, 12]
