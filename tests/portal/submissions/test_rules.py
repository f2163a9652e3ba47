"""What decides about submissions: what an earlier version hands down, who may withdraw, what an edition expects."""

from datetime import UTC, datetime, timedelta

import pytest

from portal.challenges.models import DataSet, Role
from portal.intake.contents import classify, select_staying
from portal.submissions.models import SubmittedDocument
from portal.submissions.requirements import describe_requirements
from portal.submissions.rules import Relation, withdrawing_problem
from tests.portal.factories import make_corpus, make_edition

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
STAMP, LATER = "results-2022-07-01-10-00-00", "results-2022-08-01-10-00-00"


# What is handed down -------------------------------------------------------------------------------


def documents(*paths):
    return [SubmittedDocument(path=path, kind=classify(path).value) for path in paths]


def stays(old, sent):
    return select_staying(old, sent)


OLD = (
    f"team/{STAMP}/results.txt",
    f"team/{STAMP}/ASV-a_enrolls-a_trials_f/scores",
    f"team/{STAMP}/ASV-a_enrolls-a_trials_f/linkability.pdf",
    f"team/{STAMP}.orig/results.txt",
    "paper.pdf",
    "a.hyp.txt",
)


def test_documents_that_were_not_sent_again_stay():
    assert stays(OLD, ["wav/a.wav"]) == list(OLD)
    assert stays(OLD, []) == list(OLD)


def test_results_directory_that_was_sent_again_replaces_the_old_one_as_a_whole():
    sent = [f"elsewhere/{STAMP}/results.txt"]
    assert stays(OLD, sent) == [f"team/{STAMP}.orig/results.txt", "paper.pdf", "a.hyp.txt"]


def test_results_of_another_stamp_replace_all_old_results():
    assert stays(OLD, [f"team/{LATER}/results.txt"]) == ["paper.pdf", "a.hyp.txt"]


def test_description_replaces_the_old_one_whatever_its_name():
    assert stays(OLD, ["better.pdf"]) == [*OLD[:4], "a.hyp.txt"]


@pytest.mark.parametrize(
    ("old", "sent"), [("a.hyp.txt", "a.hyp.txt/b.hyp.txt"), ("x/b.hyp.txt/c.hyp.txt", "x/b.hyp.txt")]
)
def test_file_and_folder_of_one_name_do_not_both_stay(old, sent):
    assert stays([old], [sent]) == []


# Who may withdraw ----------------------------------------------------------------------------------


def refused(relation, *, published=None, frozen=None, evaluated=NOW, is_withdrawn=False):
    times = {"published_at": published, "frozen_at": frozen, "evaluated_at": evaluated, "is_held": False}
    return bool(withdrawing_problem(relation, is_withdrawn=is_withdrawn, **times))


@pytest.mark.parametrize(
    ("published", "frozen", "evaluated", "team", "organizer"),
    [
        (None, None, None, False, False),
        (None, None, NOW, False, False),
        (NOW, None, NOW, True, False),
        (NOW, None, None, False, False),
        (None, NOW, NOW, True, True),
        (NOW, NOW, NOW, True, True),
        (NOW, NOW, NOW + timedelta(microseconds=1), False, False),
        (NOW, NOW, None, False, False),
    ],
)
def test_team_withdraws_what_is_not_published_and_organizer_what_is_not_frozen(
    published, frozen, evaluated, team, organizer
):
    times = {"published": published, "frozen": frozen, "evaluated": evaluated}
    assert (refused(Relation.TEAM, **times), refused(Relation.ORGANIZER, **times)) == (team, organizer)


def test_nobody_withdraws_twice_and_strangers_never():
    assert refused(Relation.ORGANIZER, is_withdrawn=True)
    assert refused(Relation.TEAM, is_withdrawn=True)
    assert refused(Relation.OTHER, evaluated=None)


# What an edition expects ---------------------------------------------------------------------------

pytestmark_database = pytest.mark.django_db


@pytestmark_database
def test_training_set_is_expected_only_where_the_recipe_names_it():
    corpus = make_corpus()
    for name in ("train-clean-360", "other-train"):
        data_set = DataSet.objects.create(corpus=corpus, name=name, role=Role.TRAINING)
        data_set.utterances.add(corpus.utterances.first())
    always = {"tones_enrolls", "tones_trials_f", "tones_trials_m"}
    for protocol in ("2022", "2024"):
        required = describe_requirements(make_edition(corpus, protocol=protocol))
        assert set(required.data_sets) == always | {"train-clean-360"}
        assert required.optional_sets == {"train-clean-360"}


@pytestmark_database
def test_original_that_cannot_be_read_keeps_nobody_from_submitting():
    corpus = make_corpus()
    corpus.utterances.filter(name="tones-s0-000").update(audio="content/00/gone.flac")
    expected = describe_requirements(make_edition(corpus))
    assert [one.name for one in expected.utterances.values() if not one.pcm_sha256] == ["tones-s0-000"]
