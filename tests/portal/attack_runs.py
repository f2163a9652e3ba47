"""Runs of the portal's attacks and recognisers for tests of pages: rows and files as their jobs leave them."""

import io
import json

import numpy as np

from evaluation.app.attacks.selectors import archive_key, list_attacks, similarity_key
from evaluation.app.attacks.stored_attackers import attack_parameters
from evaluation.app.models import EvaluationRun
from evaluation.app.objective_results.selectors import det_key
from evaluation.app.recognition.selectors import words_key
from evaluation.app.runs.kinds import RETRAINED
from evaluation.app.runs.services import make_row
from evaluation.figures.style import ImageFormat, Theme
from evaluation.formats.results import AttackModel, Gender, NumberIdentity, Speech
from evaluation.objective_results.track_averages import ROW_OF
from evaluation.objective_results.values import ATTACKS, Basis, Number
from portal.core.storage import replace_named, store_bytes
from speech.encoders import registry as attackers
from speech.recognizers import registry as recognizers
from tests.portal.factories import make_job

# EER with its limits by attack model: as it should be.
FALLING = {
    AttackModel.UNPROTECTED: (1.0, 0.5, 2.0),
    AttackModel.IGNORANT: (48.0, 44.0, 52.0),
    AttackModel.LAZY_INFORMED: (35.0, 30.0, 40.0),
}
SEMI = {AttackModel.SEMI_INFORMED: (20.0, 15.0, 25.0)}
FIGURES: tuple[tuple[Theme, ImageFormat], ...] = (("light", "svg"), ("dark", "svg"), ("light", "png"), ("light", "pdf"))
RULE = "written-english-1"


def make_attack_run(
    submission,
    engine="long-term-spectrum",
    *,
    eers=None,
    sets=("tones_trials_f", "tones_trials_m"),
    state="succeeded",
    trained=None,
    missing=(),
    speakers=4,
    with_files=True,
):
    """An attack of a submission; with `trained`, a training run, by seed 1 of it."""
    key = f"trained-{trained.pk}-s1" if trained else attackers.find_engine(engine).key
    name = key if trained else engine
    by_training = attack_parameters(trained, 1) if trained else {}
    result = {
        "enrolled": dict.fromkeys(sets, speakers),
        "missing": [{"what": what, "reason": reason, "is_ranked": False} for what, reason in missing],
        "voices": {} if trained else dict.fromkeys(sets, "4 speakers, mean form."),
    }
    title = f"Attack by {name} · {submission.system}"
    run = EvaluationRun.objects.create(
        submission=submission,
        kind=EvaluationRun.Kind.ATTACK,
        recipe="attack",
        recipe_version="1",
        code_version="1.2.3",
        engine=name,
        parameters={"engine_key": key, "trial_sets": list(sets)} | by_training,
    )
    vectors = [
        make_job(
            state,
            kind="vectors",
            title=f"Vectors of {one}",
            **submission.system.place_of_work,
            parameters={"run": run.pk, "data_set": one},
        )
        for one in sets
    ]
    last = "waiting" if state == "running" else "cancelled" if state == "failed" else state
    run.job = make_job(
        last,
        kind="attack",
        title=title,
        **submission.system.place_of_work,
        parameters={"run": run.pk},
        after=vectors[-1],
        result=result if state == "succeeded" else {},
    )
    run.save()
    if state == "succeeded":
        rates = eers or (SEMI if trained else FALLING)
        for data_set in sets:
            _measure(run, data_set, rates, with_voices=not trained)
        if with_files:
            _draw(run, submission, sets)
    return run


def _measure(run, data_set, rates, *, with_voices):
    gender = Gender(data_set[-1]) if data_set[-2] == "_" else Gender.MIXED
    numbers = []
    for attack, (eer, low, high) in rates.items():
        speeches = ATTACKS[attack]

        def number(metric, estimator, value, speeches=speeches, **fields):
            return Number(
                NumberIdentity(data_set, gender, metric, estimator, *speeches), value, Basis.SCORES, 64, **fields
            )

        numbers += [
            number("eer", "kaldi", eer, low=low, high=high),
            number("eer", "rocch", eer),
            number("cllr", "", 0.9),
            number("linkability", "", 0.3),
        ]
        run.score_sets.create(
            data_set=data_set,
            gender=gender if gender is not Gender.MIXED else "x",
            attack_model=attack,
            training=speeches[0],
            enrolment=speeches[1],
            speech=speeches[2],
            target_count=16,
            nontarget_count=48,
            key=_scores(),
        )
    if with_voices:
        identity = (data_set, gender, "gain_of_voice_distinctiveness", "official")
        numbers.append(Number(NumberIdentity(*identity), -3.25, Basis.SIMILARITY, 4))
    run.values.model.objects.bulk_create(make_row(run, one) for one in numbers)


def _scores():
    packed = io.BytesIO()
    np.savez(packed, targets=np.linspace(0, 2, 16), nontargets=np.linspace(-2, 1, 48))
    return store_bytes(packed.getvalue(), ".npz")


def _draw(run, submission, sets):
    for data_set in sets:
        for theme, kind in FIGURES:
            replace_named(det_key(run.pk, data_set, theme, kind), PICTURE)
            replace_named(similarity_key(run.pk, data_set, theme, kind), PICTURE)
    replace_named(archive_key(run.pk), b"PK")
    for one in list_attacks(submission):
        for score_set in one.score_sets if one.run.pk == run.pk else ():
            replace_named(one.scores_key(score_set), b"tones-s0 tones-s0-002 1.5\n")


PICTURE = b'<svg xmlns="http://www.w3.org/2000/svg" width="460" height="540"/>'


def make_recognition_run(submission, engine="moonshine-tiny", *, sets=("tones_trials_f",), state="succeeded"):
    """A recognition of a submission: of each set every utterance, with an error of each kind in the first."""
    key = recognizers.find_engine(engine).key
    run = EvaluationRun.objects.create(
        submission=submission,
        kind=EvaluationRun.Kind.RECOGNITION,
        recipe="recognition",
        recipe_version="1",
        code_version="1.2.3",
        engine=engine,
        parameters={"engine_key": key, "rule": RULE, "data_sets": list(sets)},
    )
    rows, differences = [], []
    for data_set in sets:
        spoken = _spoken(submission, data_set)
        if state == "succeeded":
            replace_named(words_key(run.pk, data_set), json.dumps(spoken).encode())
        gender = spoken[0]["gender"]
        for speech, rate in (("anonymised", 25.0), ("original", 5.0)):
            rows.append(
                {
                    "data_set": data_set,
                    "gender": gender,
                    "speech": speech,
                    "utterances": len(spoken),
                    "speakers": 2,
                    "words": 5 * len(spoken),
                    "insertions": 1,
                    "deletions": 1,
                    "substitutions": 1,
                    "error_rate": rate,
                    "low": rate - 2,
                    "high": rate + 2,
                    "honest": rate if speech == "anonymised" else None,
                    "clipped": rate if speech == "anonymised" else None,
                }
            )
        differences.append({"data_set": data_set, "gender": gender, "value": 20.0, "low": 15.0, "high": 25.0})
    result = {"rows": rows, "differences": differences, "notes": ["a note of the run"], "rule": RULE}
    run.job = make_job(
        state,
        kind="recognition",
        title=f"Recognition by {engine} · {submission.system}",
        **submission.system.place_of_work,
        parameters={"run": run.pk},
        result=result if state == "succeeded" else {},
    )
    run.save()
    return run


def _spoken(submission, data_set):
    files = submission.files.filter(data_set__name=data_set).select_related("utterance__speaker")
    rows = []
    for position, file in enumerate(files.order_by("utterance__name")):
        text = file.utterance.transcript or "SENTENCE 0 OF SPEAKER 0"
        first, number, of, *_ = text.split()
        heard = f"{first} NEW {number} {of} LISTENER" if position == 0 else text
        rows.append(
            {
                "utterance": file.utterance.name,
                "data_set": data_set,
                "speaker": file.utterance.speaker.name,
                "gender": file.utterance.speaker.gender,
                "file": file.pk,
                "words": 5,
                "errors": 3 if position == 0 else 0,
                **dict.fromkeys(("insertions", "deletions", "substitutions"), int(position == 0)),
                "original_errors": 0 if position else None,
                "is_runaway": position == 0,
                "reference": text,
                "hypothesis": heard,
                "original": text if position else None,
            }
        )
    return rows


def make_retrained(submission, *sets, state="succeeded"):
    """A finished comparison of recognisers that were trained again: retraining takes back three quarters."""
    rows = {"ceiling": 8.0, "frozen": 48.0, "retrained": 18.0}
    run = RETRAINED.make_run(
        submission, engine="phones", recipe="retrained", parameters={"engine_key": "phones@1", "data_sets": list(sets)}
    )
    run.code_version = "1.2.3"
    training = {"utterances": 400, "seconds": 3000.0, "epochs": 20, "error_rate": 7.5}
    result = {
        "trainings": [{"speech": str(speech)} | training for speech in Speech],
        "changes": {one: {"damage": [40.0, 35.0, 45.0], "retraining": [-30.0, -35.0, -25.0]} for one in sets},
        "regained": dict.fromkeys(sets, 75.0),
    }
    run.job = make_job(
        state,
        kind=RETRAINED.job,
        title="Recognition by retrained recognisers",
        **submission.system.place_of_work,
        result=result if state == "succeeded" else {},
    )
    run.save()
    run.job.parameters = {"run": run.pk}
    run.job.save()
    if state == "succeeded":
        speeches = {row: speeches for speeches, row in ROW_OF.items()}
        numbers = []
        for data_set in (*sets, "average_test"):
            for row, value in rows.items():
                training, speech = speeches[row]
                identity = NumberIdentity(data_set, Gender.ALL, "per", "whisper-base, CTC", training, None, speech)
                numbers.append(Number(identity, value, Basis.TRANSCRIPTS, 900, low=value - 2, high=value + 2))
        run.values.model.objects.bulk_create(make_row(run, one) for one in numbers)
    return run
