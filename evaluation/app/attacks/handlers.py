"""Attacks of the portal evaluation as jobs: speaker vectors of each data set, then scores and all that follows.

Every trial is scored for each attack that the attacker can make, and the scores become the same numbers as uploaded
ones. They are listed next to the team's: they are runs of a kind of their own, which no leaderboard ranks by.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from common.arrays import Samples
from common.errors import InputError
from common.problems import Problem, Severity
from evaluation.app.attacks.selectors import matrices_key, scores_key, similarity_key
from evaluation.app.attacks.stored_attackers import load_back_end, load_encoder, read_own_eer
from evaluation.app.models import EvaluationRun, ScoreSet
from evaluation.app.objective_results.services import draw_det_figures
from evaluation.app.runs import feature_cache
from evaluation.app.runs.context import EvaluationContext, Recording, list_recordings
from evaluation.app.runs.kinds import ATTACK, describe_engine
from evaluation.app.runs.portal_results import archive_key
from evaluation.app.runs.services import load_run, make_score_set, store_figure, store_objective
from evaluation.attackers.back_ends import Plda
from evaluation.attackers.trial_scores import PRESETS
from evaluation.figures import similarity
from evaluation.formats.results import Speech
from evaluation.metrics.voice_similarity import VoiceDistinctiveness
from evaluation.objective_results.attack import choose_scorer, results_folder, run_attack
from evaluation.objective_results.sources import Attacker
from portal.challenges.models import DataSet
from portal.core.storage import replace_named
from portal.jobs.kinds import JobFailure, engine_finder, job_kind
from portal.jobs.models import Actor, Queue
from portal.jobs.runner import JobContext
from speech.encoders.contract import SpeakerEncoder
from speech.model_files.devices import load_where_it_can


@engine_finder
def find_encoders() -> list[str]:
    """Return the encoders of speakers that this machine has."""
    return [name for name, one in ATTACK.engines.engines().items() if not ATTACK.engines.explain_missing(one)]


@job_kind(
    "vectors",
    title="Speaker vectors of a data set",
    queue=Queue.CPU,
    memory_mb=1000,
    card_memory_mb=2000,
    uses_card=True,
)
def extract_vectors(context: JobContext) -> dict[str, Any]:
    """Return the vectors of one data set that are not there yet, original and anonymised.

    The trials that need a recording that cannot be used are told as missing.
    """
    run = load_run(context)
    return feature_cache.extract_data_set(context, run, make_extractor(run))


def make_extractor(run: EvaluationRun) -> feature_cache.Extractor[feature_cache.Vector]:
    """Return how the vectors of a run are made and kept.

    Raises:
        JobFailure: this portal has no such engine, or another version of it, or something it needs is missing.
    """
    text = describe_engine(run)
    is_semi_informed = text.training is Speech.ANONYMISED
    speeches = (Speech.ANONYMISED,) if is_semi_informed else (Speech.ORIGINAL, Speech.ANONYMISED)
    if "trained" in run.parameters:
        trained = EvaluationRun.objects.get(pk=run.parameters["trained"])

        def load() -> SpeakerEncoder:
            return load_where_it_can(partial(load_encoder, trained, run.parameters["seed"]), ("torch",), text.title)
    else:
        engine = feature_cache.load_engine(ATTACK, run, difference=", whose vectors differ")

        def load() -> SpeakerEncoder:
            return load_where_it_can(partial(ATTACK.engines.load, engine.name), engine.packages, engine.title)

    return feature_cache.Extractor(
        title=text.title,
        what="speaker vectors",
        cache=_find_vectors(run),
        load=load,
        apply=_embed,
        stage="Vectors",
        speeches=speeches,
        needs_audio="Import the corpus again with its audio; trials that need these utterances have no score until "
        "then.",
    )


def _embed(encoder: SpeakerEncoder, samples: Sequence[Samples], rate_hz: int) -> list[feature_cache.Vector]:
    vectors = encoder.embed(samples, rate_hz)
    if not np.isfinite(vectors).all():
        raise InputError("the engine gave numbers that are not finite")
    return list(vectors)


@job_kind("attack", title="The portal's own attack", queue=Queue.CPU, memory_mb=1000)
def attack(context: JobContext) -> dict[str, Any]:
    """Return scores of every trial, their numbers, similarity matrices and figures.

    It begins again at each attempt, for it takes seconds; what an interrupted one left is replaced.
    """
    run = load_run(context)
    evaluation = EvaluationContext(run.submission)
    attacker = _attacker(run, evaluation)
    score_sets: list[ScoreSet] = []
    alts: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="attack-") as place:
        folder = Path(place)
        objective = run_attack(
            folder,
            attacker,
            evaluation.sources,
            kept=lambda test: score_sets.append(make_score_set(run, test, evaluation.recipe)),
            drawn=lambda name, found: alts.update({name: _store_voices(run, evaluation.data_sets[name], found)}),
            progress=context.progress,
        )
        _store_files(run, folder / results_folder(attacker.name, attacker.training))
    if not score_sets:
        raise JobFailure(
            "No test has scores of both target and nontarget trials, so there is nothing to measure.",
            actor=Actor.ORGANIZER,
            remedy="The reports of the vectors list what could not be used. Fix it, then run this again.",
            problems=objective.problems,
        )
    context.problems += objective.problems
    context.problems += _not_attacked(run, evaluation)
    store_objective(run, objective, score_sets)
    draw_det_figures(run, evaluation.recipe, context.progress)
    models = {one.name: evaluation.lists[one.name].model_count for one in attacker.trials}
    return {
        "values": len(objective.numbers),
        "tests": len(score_sets),
        "missing": [asdict(one) for one in objective.missing],
        "enrolled": models,
        "voices": alts,
        "own_eer": read_own_eer(run),
    }


def _attacker(run: EvaluationRun, evaluation: EvaluationContext) -> Attacker:
    text = describe_engine(run)
    stored = _find_vectors(run)
    known = evaluation.recipe.data_sets
    trials = [known[name] for name in run.parameters["trial_sets"] if name in known]
    needed = {name for one in trials for name in (one.name, one.enrolment)}
    if absent := sorted(needed - set(evaluation.data_sets)):
        raise feature_cache.data_set_gone(absent[0])

    back_end = _load_back_end(run)

    @cache
    def recordings(name: str, speech: Speech) -> list[Recording]:
        return list_recordings(run.submission, evaluation.data_sets[name], speech)

    return Attacker(
        name=run.engine,
        training=text.training,
        vectors=lambda name, speech: stored.read(recordings(name, speech)),
        speakers=lambda name: {one.utterance: one.speaker for one in recordings(name, Speech.ORIGINAL)},
        score=choose_scorer(run.engine, run.parameters.get("preset", ""), back_end),
        trials=trials,
        genders=lambda name: {one.speaker: one.gender for one in recordings(name, Speech.ORIGINAL)},
        back_end=back_end,
    )


def _find_vectors(run: EvaluationRun) -> feature_cache.FeatureCache[feature_cache.Vector]:
    """Return the kept vectors of a run, which attackers that differ in how they compare share."""
    return feature_cache.vector_cache(run.parameters.get("engine_key", run.engine))


def _load_back_end(run: EvaluationRun) -> Plda | None:
    """Return the LDA and PLDA of a trained attacker, unless the run names another way of comparing."""
    preset = run.parameters.get("preset", "")
    if "trained" not in run.parameters or (preset and PRESETS[preset].back_end != "plda"):
        return None
    try:
        return load_back_end(EvaluationRun.objects.get(pk=run.parameters["trained"]), run.parameters["seed"])
    except InputError as error:
        remedy = "Restore the file, or train again; then run this job again."
        raise JobFailure(str(error), actor=Actor.OPERATOR, remedy=remedy) from error


def _store_files(run: EvaluationRun, folder: Path) -> None:
    """Every score file by its official name, and the whole results directory as an archive."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                name = path.relative_to(folder.parent).as_posix()
                archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
                if path.name == "scores":
                    replace_named(scores_key(run.pk, path.parent.name), path.read_bytes())
    replace_named(archive_key(run.pk), packed.getvalue())


def _store_voices(run: EvaluationRun, data_set: DataSet, found: VoiceDistinctiveness) -> str:
    """Keep the similarity matrices as numbers and as figures; the figure in words."""
    packed = io.BytesIO()
    matrices = {"oo": found.oo.values, "pp": found.pp.values} | ({"op": found.op.values} if found.op else {})
    np.savez_compressed(packed, allow_pickle=False, speakers=np.array(found.oo.speakers), **matrices)
    replace_named(matrices_key(run.pk, data_set.name), packed.getvalue())
    genders = dict(data_set.utterances.order_by().values_list("speaker__name", "speaker__gender"))
    light, dark = (similarity.make_similarity_plot(found, genders, theme) for theme in ("light", "dark"))
    words = similarity.describe(found)
    key = partial(similarity_key, run.pk, data_set.name)
    store_figure(run, key, light, dark=dark, title=similarity.TITLE, description=words)
    return words


def _not_attacked(run: EvaluationRun, evaluation: EvaluationContext) -> list[Problem]:
    """Return the trial sets of the recipe that were left out, each with its reason."""
    done = set(run.parameters["trial_sets"])
    states = evaluation.trial_sets(with_originals=describe_engine(run).training is Speech.ORIGINAL)
    remedy = "Its numbers are missing here; start the attack again once it is there."
    return [
        Problem("not-attacked", one.name, "a trial set that can be attacked", one.problem, remedy, Severity.WARNING)
        for one in states
        if one.name not in done and one.problem
    ]
