"""The portal's own attacks on a submission: starts them, and is the body of their jobs.

For each data set speaker vectors of the original and the anonymised recordings, kept by content; then every trial is
scored for each attack that the attacker can make, and the scores become the same numbers as uploaded ones. Own numbers
stand beside the team's: they are runs of a kind of their own, which no board ranks by.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation import attack_keys
from evaluation.attackers import registry
from evaluation.attackers.contract import Samples, SpeakerEncoder
from evaluation.encoders import Encoder, EngineText, encoder_of, text_of
from evaluation.extraction import Maker, Pace, extract
from evaluation.figures.style import ImageFormat, Theme
from evaluation.formats.claims import Speech
from evaluation.formats.problems import Problem, Severity
from evaluation.metrics.errors import MetricInputError
from evaluation.models import EvaluationRun, ScoreSet, SpeakerVector
from evaluation.objective.attack import Attacker, Voices, results_folder, run_attack
from evaluation.objective.scorers import scorer_of
from evaluation.objective_figures import draw_det_figures
from evaluation.selectors_recordings import Ground, Recording, TrialSetState, recordings_of
from evaluation.services_objective import score_set_of, write_objective
from evaluation.services_speech import require_speech, require_standing, start_chain
from portal.core.storage import replace_named
from portal.jobs.kinds import JobFailure
from portal.jobs.models import Actor, Job
from portal.jobs.runner import JobContext
from portal.jobs.services import NotPossible
from portal.submissions.models import Submission

VECTORS, KIND = "vectors", "attack"
METHOD_VERSION = "1"
KEYS_PER_QUERY = 500
VECTOR_TYPE = "<f4"
THEMES: tuple[Theme, ...] = ("light", "dark")
BOTH_SPEECHES = (Speech.ORIGINAL, Speech.ANONYMISED)

Vector = npt.NDArray[np.float32]


def start_attack(
    *, submission: Submission, engine: str = registry.DEFAULT, trained: EvaluationRun | None = None,
    seed: int | None = None, data_sets: Collection[str] | None = None, options: Mapping[str, Any] | None = None,
    after: Job | None = None, by: Any = None,
) -> EvaluationRun:  # fmt: skip
    """An attack on a submission as a chain of jobs; its run.

    Args:
        engine: name in the registry; unprotected, ignorant and lazy-informed.
        trained: a training run, with its `seed`, in place of an engine; semi-informed.
        data_sets: names of trial sets; all that can be attacked where none is named.
        options: `preset`, how vectors are scored (`evaluation.attackers.scorers`).
        after: the job that the chain follows.

    Raises:
        NotPossible: nothing can be attacked, something is missing, or the same attack is under way.
    """
    run = EvaluationRun(
        submission=submission, kind=EvaluationRun.Kind.ATTACK, recipe="attack", recipe_version=METHOD_VERSION,
        **_engine_fields(engine, trained, seed, options),
    )  # fmt: skip
    text = text_of(run)
    tests = _attackable(submission, data_sets, with_originals=text.training is Speech.ORIGINAL)
    names = list(dict.fromkeys(name for one in tests for name in (one.enrolled, one.name)))
    if after is None:
        require_speech(submission, names)
    run.parameters["trial_sets"] = [one.name for one in tests]
    titles = f"Speaker vectors by {text.title}", f"Attack by {text.title}"
    return start_chain(run=run, kinds=(VECTORS, KIND), titles=titles, data_sets=names, after=after, by=by)


def _engine_fields(
    name: str, trained: EvaluationRun | None, seed: int | None, options: Mapping[str, Any] | None
) -> dict[str, Any]:
    preset = dict(options or {}).get("preset", "")
    try:
        if trained is not None:
            from evaluation.services_training import engine_key  # it starts attacks itself

            key = engine_key(trained, seed or 0)
            scorer_of(key, preset)
            return {
                "engine": key,
                "parameters": {"engine_key": key, "trained": trained.pk, "seed": seed or 0, "preset": preset},
            }
        engine = registry.find_engine(name)
        if sentence := registry.missing_of(engine):
            raise NotPossible(sentence)
        scorer_of(engine.name, preset)
    except MetricInputError as error:
        raise NotPossible(str(error)) from error
    return {"engine": engine.name, "parameters": {"engine_key": engine.key, "preset": preset}}


def _attackable(submission: Submission, wanted: Collection[str] | None, *, with_originals: bool) -> list[TrialSetState]:
    """The trial sets to attack; all of those that are named have to be possible."""
    states = Ground(submission).trial_sets(with_originals=with_originals)
    known = {one.name for one in states}
    if unknown := sorted(set(wanted or ()) - known):
        raise NotPossible(
            f"Expected trial sets among {', '.join(sorted(known)) or 'none'}, found {', '.join(unknown)}."
        )
    chosen = [one for one in states if wanted is None or one.name in wanted]
    refused = [one for one in chosen if one.refusal]
    if not chosen:
        raise NotPossible("There is no trial set to attack: import the corpus with its trial lists.")
    if refused and (wanted is not None or len(refused) == len(chosen)):
        raise NotPossible(refused[0].refusal)
    return [one for one in chosen if not one.refusal]


# Vectors -------------------------------------------------------------------------------------------


def run_vectors(context: JobContext) -> dict[str, Any]:
    """Body of the job: the vectors of one data set that are not there yet, original and anonymised.

    A recording that cannot be used is named; the others are done, and the trials that need it are told as missing.
    """
    run = _run_of(context)
    ground = Ground(run.submission)
    data_set = ground.data_sets.get(context.parameters["data_set"])
    if data_set is None:
        raise _gone(context.parameters["data_set"])
    encoder = _encoder(run)
    maker = vector_maker(encoder)
    pace = Pace(encoder.text.key)
    for speech in speeches_of(encoder.text):
        recordings = recordings_of(run.submission, data_set, speech)
        context.problems += _without_audio(recordings)
        context.problems += extract(context, maker, recordings, f"Vectors of {speech} {data_set}"[:80], pace)
    return pace.as_result()


def speeches_of(text: EngineText) -> tuple[Speech, ...]:
    """The forms of speech whose vectors an attacker needs."""
    return BOTH_SPEECHES if text.training is Speech.ORIGINAL else (Speech.ANONYMISED,)


def vector_maker(encoder: Encoder) -> Maker[Vector]:
    """How an encoder's vectors are made and kept; the model is loaded with the first of them."""
    loaded: list[SpeakerEncoder] = []

    def make(samples: Sequence[Samples], rate_hz: int) -> list[Vector]:
        if not loaded:
            loaded.append(load_or_fail(encoder))
        vectors = loaded[0].embed(samples, rate_hz)
        if not np.isfinite(vectors).all():
            raise MetricInputError("the engine gave numbers that are not finite")
        return list(vectors)

    def keep(found: Sequence[tuple[str, Vector]]) -> None:
        rows = (
            SpeakerVector(engine=encoder.text.key, audio=key, vector=np.asarray(vector, VECTOR_TYPE).tobytes())
            for key, vector in found
        )
        SpeakerVector.objects.bulk_create(rows, ignore_conflicts=True)

    return Maker(encoder.text.title, "speaker vectors", make, lambda keys: _known(encoder.text.key, keys), keep)


def load_or_fail(encoder: Encoder) -> SpeakerEncoder:
    """The encoder; a model that cannot be loaded ends the job, for it is no fault of a recording."""
    try:
        return encoder.load()
    except MetricInputError as error:
        raise _no_engine(error) from error


def _known(engine: str, keys: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for part in parts_of(keys):
        found.update(SpeakerVector.objects.filter(engine=engine, audio__in=part).values_list("audio", flat=True))
    return found


def parts_of(keys: Sequence[str]) -> Iterable[Sequence[str]]:
    """So many keys that a query takes them."""
    return (keys[start : start + KEYS_PER_QUERY] for start in range(0, len(keys), KEYS_PER_QUERY))


def vectors_of(engine: str, recordings: Iterable[Recording]) -> dict[str, Vector]:
    """The kept vectors by name of the utterance; of recordings without one none."""
    by_name = {one.utterance: one.audio for one in recordings if one.audio}
    by_key: dict[str, Vector] = {}
    for part in parts_of(list(dict.fromkeys(by_name.values()))):
        rows = SpeakerVector.objects.filter(engine=engine, audio__in=part).values_list("audio", "vector")
        by_key.update((key, np.frombuffer(vector, VECTOR_TYPE).astype(np.float32)) for key, vector in rows)
    return {name: by_key[key] for name, key in by_name.items() if key in by_key}


# Scores and numbers --------------------------------------------------------------------------------


def run_attack_job(context: JobContext) -> dict[str, Any]:
    """Body of the job: scores of every trial, their numbers, similarity matrices and figures.

    It begins anew at each attempt, for it takes seconds; what an interrupted one left is replaced.
    """
    run = _run_of(context)
    ground = Ground(run.submission)
    attacker = _attacker(run, ground)
    score_sets: list[ScoreSet] = []
    alts: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="attack-") as place:
        folder = Path(place)
        objective = run_attack(
            folder, attacker, ground.sources,
            kept=lambda test: score_sets.append(score_set_of(run, test, ground.recipe)),
            drawn=lambda voices: alts.update({voices.data_set: _draw_voices(run, ground, voices)}),
            progress=context.progress,
        )  # fmt: skip
        _keep_files(run, folder / results_folder(attacker.name, attacker.training))
    if not score_sets:
        raise JobFailure(
            "No test has scores of both target and nontarget trials, so there is nothing to measure.",
            actor=Actor.ORGANIZER,
            remedy="The reports of the vectors name what could not be used. Mend it, then run this again.",
            problems=objective.problems,
        )
    context.problems += objective.problems
    context.problems += _not_attacked(run, ground)
    write_objective(run, objective, score_sets)
    draw_det_figures(run, ground.recipe, context.progress)
    models = {one.name: ground.lists[one.name].model_count for one in attacker.trials}
    return {
        "values": len(objective.numbers),
        "tests": len(score_sets),
        "missing": [asdict(one) for one in objective.missing],
        "enrolled": models,
        "voices": alts,
    }


def _attacker(run: EvaluationRun, ground: Ground) -> Attacker:
    text = text_of(run)
    trials = [ground.recipe.data_sets[name] for name in run.parameters["trial_sets"] if name in ground.recipe.data_sets]
    needed = {name for one in trials for name in (one.name, one.enrolment)}
    if absent := sorted(needed - set(ground.data_sets)):
        raise _gone(absent[0])
    kept: dict[tuple[str, Speech], list[Recording]] = {}

    def recordings(name: str, speech: Speech) -> list[Recording]:
        if (name, speech) not in kept:
            kept[name, speech] = recordings_of(run.submission, ground.data_sets[name], speech)
        return kept[name, speech]

    return Attacker(
        name=run.engine,
        training=text.training,
        vectors=lambda name, speech: vectors_of(text.key, recordings(name, speech)),
        speakers=lambda name: {one.utterance: one.speaker for one in recordings(name, Speech.ORIGINAL)},
        score=scorer_of(run.engine, run.parameters.get("preset", "")),
        trials=trials,
        genders=lambda name: {one.speaker: one.gender for one in recordings(name, Speech.ORIGINAL)},
    )


def _keep_files(run: EvaluationRun, folder: Path) -> None:
    """Every score file by its official name, and the whole results directory as an archive."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                name = path.relative_to(folder.parent).as_posix()
                archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
                if path.name == "scores":
                    replace_named(attack_keys.scores_key(run.pk, path.parent.name), path.read_bytes())
    replace_named(attack_keys.archive_key(run.pk), packed.getvalue())


def _draw_voices(run: EvaluationRun, ground: Ground, voices: Voices) -> str:
    """Keep the similarity matrices as numbers and as figures for pages and print; the figure in words."""
    from evaluation.figures.similarity import describe, draw_similarity

    found, packed = voices.found, io.BytesIO()
    matrices = {"oo": found.oo.values, "pp": found.pp.values} | ({"op": found.op.values} if found.op else {})
    np.savez_compressed(packed, allow_pickle=False, speakers=np.array(found.oo.speakers), **matrices)
    replace_named(attack_keys.matrices_key(run.pk, voices.data_set), packed.getvalue())
    data_set = ground.data_sets[voices.data_set]
    genders = dict(data_set.utterances.order_by().values_list("speaker__name", "speaker__gender"))
    formats: list[tuple[Theme, ImageFormat]] = [(theme, "svg") for theme in THEMES] + [
        ("light", "png"),
        ("light", "pdf"),
    ]
    for theme, kind in formats:
        drawn = draw_similarity(found, genders=genders, theme=theme, image_format=kind)
        replace_named(attack_keys.similarity_key(run.pk, voices.data_set, theme, kind), drawn)
    return describe(found)


# What is wrong -------------------------------------------------------------------------------------


def _run_of(context: JobContext) -> EvaluationRun:
    runs = EvaluationRun.objects.select_related("submission__system__edition__corpus", "submission__system__corpus")
    run = runs.get(pk=context.parameters["run"])
    require_standing(run.submission)
    return run


def _encoder(run: EvaluationRun) -> Encoder:
    try:
        return encoder_of(run)
    except MetricInputError as error:
        raise _no_engine(error) from error


def _no_engine(error: MetricInputError) -> JobFailure:
    return JobFailure(str(error), actor=Actor.OPERATOR, remedy="What was finished is kept: run the job again then.")


def _gone(name: str) -> JobFailure:
    return JobFailure(
        f"The corpus has no data set {name} any more.",
        actor=Actor.ORGANIZER,
        remedy="Import it again, then run the job again: what was finished is kept.",
    )


def _without_audio(recordings: Sequence[Recording]) -> list[Problem]:
    silent = [one for one in recordings if not one.audio]
    if not silent:
        return []
    found = f"{len(silent)} without, such as {silent[0].utterance}"
    remedy = "Import the corpus again with its audio; trials that need these utterances have no score until then."
    return [Problem("no-audio", "the corpus", "audio of every utterance", found, remedy, count=len(silent))]


def _not_attacked(run: EvaluationRun, ground: Ground) -> list[Problem]:
    """The trial sets of the recipe that were left out, each with its reason."""
    done = set(run.parameters["trial_sets"])
    states = ground.trial_sets(with_originals=text_of(run).training is Speech.ORIGINAL)
    remedy = "Its numbers are missing here; start the attack again once it is there."
    return [
        Problem("not-attacked", one.name, "a trial set that can be attacked", one.refusal, remedy, Severity.WARNING)
        for one in states
        if one.name not in done and one.refusal
    ]
