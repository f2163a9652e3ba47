"""What decides about submissions: what an earlier version hands down, who may withdraw, what an edition expects."""

from datetime import UTC, datetime, timedelta

import pytest

from portal.challenges.models import DataSet, Role
from portal.core.storage import load_audio
from portal.intake.contents import classify, select_staying
from portal.intake.expectation import pcm_sha256
from portal.submissions.models import SubmittedDocument
from portal.submissions.requirements import describe_requirements, hash_originals
from portal.submissions.rules import Relation, withdrawing_problem
from tests.portal.factories import make_corpus, make_edition, make_team, make_team_system, store_tone

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
def test_edition_expects_the_sets_of_enrolment_and_trial():
    corpus = make_corpus()
    expected = describe_requirements(make_edition(corpus, scores_required=False, description_required=True))
    assert {name: len(members) for name, members in expected.data_sets.items()} == {
        "tones_enrolls": 4,
        "tones_trials_f": 2,
        "tones_trials_m": 2,
    }
    assert (expected.audio_required, expected.scores_required, expected.description_required) == (True, False, True)
    assert expected.trial_counts == {"tones_trials_f": (2, 0), "tones_trials_m": (2, 0)}
    for utterance in corpus.utterances.all():
        known = expected.utterances[utterance.name]
        assert (known.samples, known.rate_hz) == (9600, 16_000)
        assert known.pcm_sha256 == pcm_sha256(load_audio(utterance.audio)[0])


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
def test_originals_are_hashed_once_and_told_as_progress():
    corpus = make_corpus()
    told = []
    assert hash_originals(corpus, lambda *given: told.append(given)) == 8
    assert (told[0], told[-1]) == (("Hashing the originals", 1, 8), ("Hashing the originals", 8, 8))
    assert hash_originals(corpus) == 0
    assert corpus.utterances.filter(pcm_sha256="").count() == 0


@pytestmark_database
def test_original_that_cannot_be_read_keeps_nobody_from_submitting():
    corpus = make_corpus()
    corpus.utterances.filter(name="tones-s0-000").update(audio="content/00/gone.flac")
    expected = describe_requirements(make_edition(corpus))
    assert [one.name for one in expected.utterances.values() if not one.pcm_sha256] == ["tones-s0-000"]


@pytestmark_database
def test_what_is_inherited_from_first_is_the_newest_that_holds_anything():
    from portal.submissions.inheritance import find_inheritance

    system = make_team_system(make_team(make_edition(make_corpus())))
    utterance = system.corpus.utterances.first()
    states = ["evaluated", "withdrawn", "refused", "refused", "received"]
    versions = [system.submissions.create(version=number, state=state) for number, state in enumerate(states, start=1)]
    assert find_inheritance(system, before=versions[4].version).newest is None
    for version in versions[:2]:
        version.files.create(
            data_set=utterance.data_sets.first(), utterance=utterance, audio=store_tone(300), samples=1, rate_hz=1
        )
    assert find_inheritance(system, before=versions[4].version).newest == versions[0]
    versions[2].documents.create(path="a.pdf", kind="description", key="k", bytes=1)
    assert find_inheritance(system, before=versions[4].version).newest == versions[2]
    assert find_inheritance(system, before=versions[2].version).newest == versions[0]
