"""What the portal's own attacks and recognition of a submission left, read back as documents in the official layout.

An edition that the portal evaluates ranks by them as another does by the files of a team: score files and similarity
matrices of the attacks, hypotheses of the recogniser. Texts are made comparable by the rule of the recognition.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from django.core.files.storage import default_storage

from evaluation.app.models import EvaluationRun
from evaluation.app.runs.context import EvaluationContext, list_recordings
from evaluation.app.runs.feature_cache import hypothesis_cache
from evaluation.app.runs.kinds import describe_engine
from evaluation.formats.results import Speech
from evaluation.metrics.word_normalization import TextRule, find_rule
from evaluation.objective_results.attack import NO_VECTORS, attacks_of_training, results_folder
from evaluation.objective_results.results.expected import detection_name
from evaluation.objective_results.results.folders import ScoreFile, SystemResults
from evaluation.objective_results.values import ATTACKS, read_missing
from evaluation.protocols.recipes import DataSet
from portal.challenges.models import Utterance


def archive_key(run: int) -> str:
    """Return the whole results directory of an attack: score files and similarity matrices in the official layout."""
    return f"derived/attacks/{run}/results.zip"


@dataclass(frozen=True)
class PortalResults:
    """What a submission's finished attacks and recognition give.

    Attributes:
        attacks: finished runs, of which no two make the same test.
        recognition: a finished run; None where the edition has no word error rates.
    """

    evaluation: EvaluationContext
    attacks: tuple[EvaluationRun, ...]
    recognition: EvaluationRun | None

    def write(self, folder: Path) -> SystemResults:
        """Write all of it into a folder; the score files as results are read."""
        scores = [file for run in self.attacks for file in self._write_attack(run, folder)]
        if self.recognition is not None:
            self._write_hypotheses(self.recognition, folder)
        return SystemResults("", self.evaluation.recipe.edition, (), (), (), tuple(scores), ())

    def _write_attack(self, run: EvaluationRun, folder: Path) -> Iterable[ScoreFile]:
        text, recipe = describe_engine(run), self.evaluation.recipe
        with default_storage.open(archive_key(run.pk)) as stored, zipfile.ZipFile(stored) as archive:
            archive.extractall(folder)  # the portal's own file
        place = folder / results_folder(run.engine, text.training)
        for name in run.parameters["trial_sets"]:
            data_set = recipe.data_sets[name]
            for attack in attacks_of_training(text.training):
                training, enrolment, speech = ATTACKS[attack]
                path = place / detection_name(recipe, data_set, enrolment, speech) / "scores"
                if path.is_file():
                    shown = path.relative_to(folder).as_posix()
                    yield ScoreFile(path, shown, name, training, enrolment, speech)

    @property
    def partial_voices(self) -> dict[str, str]:
        """Return why voices were compared of a part of a trial set only, by its name: as the attacks found."""
        said = [one for run in self.attacks if run.job for one in read_missing(run.job.result.get("missing", ()))]
        reasons = [one.reason for one in said if one.reason.endswith(f" {NO_VECTORS}")]
        return {reason.removesuffix(f" {NO_VECTORS}").rpartition(" ")[2]: reason for reason in reasons}

    def _write_hypotheses(self, run: EvaluationRun, folder: Path) -> None:
        place = folder / "hypotheses"
        place.mkdir(exist_ok=True)
        suffix = {Speech.ORIGINAL: "", Speech.ANONYMISED: self.evaluation.recipe.anonymised_suffix}
        for data_set in self.evaluation.recipe.sets("recognition"):
            parts = self.evaluation.find_parts(data_set)
            for speech in Speech if parts else ():
                texts: dict[str, str] = {}
                for part in parts:
                    language = self.evaluation.language_of(part.name)
                    cache = hypothesis_cache(run.parameters["engine_key"], language)
                    texts |= cache.read(list_recordings(self.evaluation.submission, part, speech))
                lines = (f"{name} {self.rule.normalise(text)}".rstrip() for name, text in sorted(texts.items()))
                path = place / f"{data_set.name}{suffix[speech]}.txt"
                path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    @cached_property
    def rule(self) -> TextRule:
        """Return what makes hypotheses and transcripts comparable."""
        return find_rule(self.recognition.parameters["rule"] if self.recognition else "")

    def find_references(self, data_set: DataSet) -> Mapping[str, str]:
        """Return utterance → transcript of a recognition set by the rule of the recogniser; none where any is
        missing."""
        complete = self.evaluation.find_references(data_set)
        if not complete or self.recognition is None:
            return complete
        rows = Utterance.objects.filter(data_sets__in=self.evaluation.find_parts(data_set)).distinct().order_by("name")
        return {name: self.rule.normalise(text) for name, text in rows.values_list("name", "transcript")}
