"""A challenge of several languages through a real worker: import, submission, check, evaluation by language, averages,
an attacker trained on the team's speech, ranks. English is real speech of ``../shared``; Spanish and Italian are
synthetic, said by Kokoro from phonemes."""

import csv
import io
from collections import defaultdict

import numpy as np
import pytest
import soundfile
from django.urls import reverse

from anonymization.methods.contract import PseudoSpeaker
from anonymization.methods.registry import get_method
from evaluation.app.models import EvaluationRun
from evaluation.app.runs.kinds import TRAINING
from evaluation.formats.results import AttackModel, Speech
from portal.challenges.models import Corpus
from portal.corpora.services import start_import
from portal.jobs.models import Job, JobState
from portal.submissions.models import Submission
from speech.audio.files import read_pcm16, resample
from speech.recognizers import registry
from speech.synthesizers import kokoro
from tests.portal.archives import DESCRIPTION, submit
from tests.portal.factories import make_edition, make_organizer, make_team
from tests.portal.objective_runs import read_values_of_submission
from tests.portal.processes.programs import wait_for_end, wait_until
from tests.portal.trainings import needs_torch
from tests.recordings import SHARED

ENGLISH = ("1998", "3080", "1688")
TRAINED_ON = 8  # speakers
PATIENCE_S = 900.0  # a minute of work, on a machine that may be busy
# By language: voices, and sentences with their phonemes. Whisper base writes nearly all of these words.
SPOKEN = {
    "es": (
        ("af_heart", "am_michael", "bf_emma"),
        {
            "hola muchas gracias por su ayuda": "ola muˈtʃas ɡɾˈasjas poɾ su ajˈuða",
            "el gato duerme en la cama de mi madre": "el ɡˈato dwˈeɾme en la kˈama de mi mˈaðɾe",
        },
    ),
    "it": (
        ("bf_emma", "af_sky"),  # trials are made of speakers of a gender
        {
            "buongiorno come stai oggi": "bwɔndʒˈorno kˈome stˈai ˈɔddʒi",
            "la mia casa è molto grande": "la mˈia kˈaza ˈɛ mˈolto ɡrˈande",
        },
    ),
}
RECIPE = """
edition = "languages"
title = "Three languages"
anonymised_suffix = "_anon"
baselines = []
attack_models = ["unprotected", "ignorant", "lazy-informed", "semi-informed"]
uncertain = []

[data_sets]
en_enrolls = { role = "enrolment", split = "test", gender = "mixed", language = "en" }
en_trials = { role = "trial", split = "test", gender = "mixed", language = "en", enrolment = "en_enrolls" }
en_asr = { role = "recognition", split = "test", gender = "all", language = "en" }
es_enrolls = { role = "enrolment", split = "test", gender = "mixed", language = "es" }
es_trials = { role = "trial", split = "test", gender = "mixed", language = "es", enrolment = "es_enrolls" }
es_asr = { role = "recognition", split = "test", gender = "all", language = "es" }
it_enrolls = { role = "enrolment", split = "test", gender = "mixed", language = "it" }
it_trials = { role = "trial", split = "test", gender = "mixed", language = "it", enrolment = "it_enrolls" }
it_asr = { role = "recognition", split = "test", gender = "all", language = "it" }
train_english = { role = "training", split = "train", gender = "all", language = "en" }

[evaluation]
by = "portal"
attackers = ["ge2e"]
recognizer = "whisper-base"
training = "small"

[[metrics]]
key = "eer"
estimator = "speechbrain"
primary = true
[[metrics]]
key = "wer"
primary = true

[tracks.english]
languages = ["en"]
[[tracks.english.averages]]
metric = "eer"
estimator = "speechbrain"
label = "EER"
weights.test = { en_trials = 1.0 }
[[tracks.english.averages]]
metric = "wer"
label = "WER"
weights.test = { en_asr = 1.0 }
[tracks.english.ranking]
RULES

[tracks.multilingual]
languages = ["en", "es"]
surprise_languages = ["it"]
[[tracks.multilingual.averages]]
metric = "eer"
estimator = "speechbrain"
label = "Average EER"
weights.test = { en_trials = 0.6, es_trials = 0.4 }
[[tracks.multilingual.averages]]
metric = "wer"
label = "Average WER"
weights.test = { en_asr = 0.6, es_asr = 0.4 }
[tracks.multilingual.ranking]
RULES
""".replace(
    "RULES",
    """split = "test"
attack_model = "semi-informed"
privacy = { metric = "eer", estimator = "speechbrain" }
minimum_eers = [0]
policy = "cumulative"
inclusive = true
note_within = 0.05
utilities = [{ metric = "wer", better = "lower" }]
ties = "equal rank, in the order of higher EER"
several_systems = "the one with the best utility is ranked"
late = "unranked\"""",
)


def read_manifest(folder):
    with (SHARED / folder / "utterances.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def choose_english():
    """Of each speaker the three shortest utterances of two seconds or more, real."""
    chosen = defaultdict(list)
    for row in sorted(read_manifest("speech"), key=lambda row: float(row["duration_s"])):
        mine = chosen[row["speaker"]]
        if row["speaker"] in ENGLISH and float(row["duration_s"]) >= 2 and len(mine) < 3:
            mine.append(row)
            role = "enrolment" if len(mine) == 1 else "trial"
            yield row, role, SHARED / "speech" / row["path"]


def choose_training():
    """Real English speech of other speakers, two utterances of each."""
    met = defaultdict(int)
    for row in read_manifest("speech-train"):
        if (
            row["part"] == "many"
            and 4 <= float(row["duration_s"]) <= 9
            and (row["speaker"] in met or len(met) < TRAINED_ON)
        ):
            met[row["speaker"]] += 1
            if met[row["speaker"]] <= 2:
                yield row, "training", SHARED / "speech-train" / row["path"]


def speak_phonemes(voice, phonemes):
    """Int16 samples at 16 kHz; Kokoro's dictionary is of English, its network says the phonemes of other languages."""
    engine = speak_phonemes.engine = getattr(speak_phonemes, "engine", None) or kokoro.Kokoro()
    tokens = [engine._symbols[symbol] for symbol in phonemes]
    samples = engine._say(tokens, {voice: 1.0})
    return resample(np.rint(np.clip(samples, -1, 1) * 32767).astype(np.int16), kokoro.RATE_HZ, 16_000)


@pytest.fixture
def speech(shared, tmp_path):
    """A folder with a manifest: real English, synthetic Spanish and Italian, real training speech."""
    if missing := kokoro.missing() or registry.explain_missing(registry.find_engine("whisper-base")):
        pytest.skip(missing)
    folder = tmp_path / "speech"
    folder.mkdir()
    rows = []

    def add(name, speaker, gender, transcript, role, data_set, **file):
        path = folder / f"{name}.flac"
        if "original" in file:
            path.symlink_to(file["original"])
        else:
            soundfile.write(path, file["samples"], 16_000, subtype="PCM_16")
        rows.append((name, speaker, gender, transcript, path.name, data_set, role))

    for row, role, path in choose_english():
        data_set = "en_enrolls" if role == "enrolment" else "en_trials"
        add(row["utterance_id"], row["speaker"], row["gender"], row["transcript"], role, data_set, original=path)
    for row, role, path in choose_training():
        add(row["utterance_id"], row["speaker"], row["gender"], row["transcript"], role, "train_english", original=path)
    for language, (voices, sentences) in SPOKEN.items():
        for voice in voices:
            for place, (text, phonemes) in enumerate(sentences.items()):
                role, ending = ("trial", "trials") if place else ("enrolment", "enrolls")
                name = f"{language}-{voice}"
                samples = speak_phonemes(voice, phonemes)
                where = (role, f"{language}_{ending}")
                add(f"{name}-{place}", name, voice[1].upper(), text.upper(), *where, samples=samples)
    with (folder / "utterances.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("utterance_id", "speaker", "gender", "transcript", "path", "data_set", "role"))
        writer.writerows(rows)
    return folder


def anonymise(corpus, folder):
    """The archive of a team: everything by B2, and what it says of its system."""
    method = get_method("mcadams-2022")
    members = {"description.pdf": DESCRIPTION}
    for utterance in corpus.utterances.all():
        samples, rate = read_pcm16(folder / f"{utterance.name}.flac")
        file = io.BytesIO()
        soundfile.write(
            file,
            method.anonymize(samples, rate, PseudoSpeaker(utterance.speaker.name, {"alpha": 0.8})),
            rate,
            format="WAV",
            subtype="PCM_16",
        )
        members[f"wav/{utterance.name}.wav"] = file.getvalue()
    return members


@pytest.mark.slow  # Kokoro, Whisper base and a training
@needs_torch
def test_multilingual_track_from_import_to_leaderboard(standing, client, speech):
    imported = wait_for_end(start_import(folder=str(speech), name="languages", is_shared=True), seconds=PATIENCE_S)
    assert imported.state == JobState.SUCCEEDED, imported.failure
    corpus = Corpus.objects.get(name="languages")
    organizer = make_organizer()
    english, edition = (
        make_edition(corpus, organizers=[organizer], protocol="", recipe_text=RECIPE, track=track)
        for track in ("english", "multilingual")
    )
    assert set(english.recipe.data_sets) == {"en_enrolls", "en_trials", "en_asr", "train_english"}
    submission = submit(make_team(edition), anonymise(corpus, speech))
    wait_until(lambda: has_ended(submission), "the evaluation", seconds=PATIENCE_S)
    submission.refresh_from_db()
    failed = Job.objects.filter(state=JobState.FAILED).values_list("title", "failure")
    assert (submission.state, list(failed)) == (Submission.State.EVALUATED, [])
    assert not Job.objects.filter(title__contains="en_asr").exists()

    values = read_values_of_submission(submission)

    def eer(data_set, attack):
        return values.number("eer", "speechbrain", data_set=data_set, attack_model=attack)

    def wer(data_set, spoken=Speech.ANONYMISED):
        return values.number("wer", "", data_set=data_set, speech=spoken)

    for language in ("en", "es", "it"):
        assert {attack for attack in AttackModel if eer(f"{language}_trials", attack)} == set(AttackModel)
        assert wer(f"{language}_asr", Speech.ORIGINAL).value < 20  # each is heard in its own language
        assert wer(f"{language}_asr").value < 60
    average = 0.6 * wer("en_asr").value + 0.4 * wer("es_asr").value
    assert wer("average_test").value == pytest.approx(average)
    semi = AttackModel.SEMI_INFORMED
    average = 0.6 * eer("en_trials", semi).value + 0.4 * eer("es_trials", semi).value
    assert eer("average_test", semi).value == pytest.approx(average)
    trained = EvaluationRun.objects.get(submission=submission, kind=TRAINING.kind)
    assert trained.parameters["data_sets"] == ["train_english"]

    client.force_login(organizer)
    page = client.get(reverse("leaderboard:detail", args=[edition.name]), {"languages": "all"}).content.decode()
    for heading in ("EER, English", "EER, Spanish", "EER, Italian", "WER, English", "WER, Spanish", "WER, Italian"):
        assert heading in page
    assert "EER, Spanish" not in client.get(reverse("leaderboard:detail", args=[edition.name])).content.decode()
    lines = client.get(reverse("leaderboard:csv", args=[edition.name])).content.decode("utf-8-sig").splitlines()
    found = {row["wer-it"] for row in csv.DictReader(lines) if row["kind"] == "system"}
    assert [float(one) for one in found] == [pytest.approx(wer("it_asr").value)]
    rules = client.get(edition.get_absolute_url()).content.decode()
    assert "Surprise languages, measured and in no average: Italian." in rules


def has_ended(submission):
    submission.refresh_from_db()
    ended = submission.state in (Submission.State.EVALUATED, Submission.State.REFUSED)
    return ended or Job.objects.filter(state=JobState.FAILED).exists()
