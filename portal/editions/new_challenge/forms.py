"""The form of a new challenge, in steps: speech and rules first, then everything else with what follows from them.

Where the rules are proposed, the fields of the recipe are those of the corpus, filled in. Nothing is stored before the
whole form is valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError
from django.forms.boundfield import BoundField, BoundWidget
from django.utils.functional import cached_property

from common.errors import ProblemsError
from common.wording import counted
from evaluation.metrics.catalogue import find_metric
from evaluation.protocols.evaluation_table import Evaluation
from evaluation.protocols.ranking.policy import MOST_CONDITIONS
from evaluation.protocols.recipe_making import (
    ESTIMATORS,
    WER,
    Choices,
    SpeechSet,
    TrialCounts,
    count_trials,
    explain_few_speakers,
    explain_little_training,
    explain_no_gain,
    explain_obstacles,
    make_recipe,
    possible_utilities,
    propose_choices,
    training_sets,
    usable_trial_sets,
)
from evaluation.protocols.recipes import Recipe, load_recipe, shipped_editions
from portal.challenges.models import Corpus, Edition
from portal.challenges.rules import read_recipe_text
from portal.challenges.selectors import corpora_for_edition
from portal.challenges.services import find_problems
from portal.core.fields import RadioField
from portal.core.labels import duration
from portal.corpora.selectors import summaries
from portal.editions.forms import DATES, OWN, EditionForm, shipped_recipes
from portal.editions.selectors import (
    describe_sets,
    find_engines,
    free_name,
    offer_attackers,
    offer_recognizers,
    offer_trainings,
    write_recipe,
)

PROPOSED, NONE = "proposed", "none"
UNTITLED = "New challenge"
WEIGHT = "weight__"
BY = (
    ("portal", "The portal: teams submit speech only"),
    ("teams", "The teams: they submit scores and results, which the portal recomputes"),
    ("both", "Both: the portal’s numbers rank, those of the teams are shown beside them"),
)
RECIPE = (
    *("data_sets", "utilities", "ranked_by", "minimum_eers", "minimum_pitch", "by", "attacker", "recognizer"),
    *("training", "further", "language", "keeps_duration"),
)
REQUIRED_PARTS = ("audio_required", "scores_required")
# The order of the page, and of the errors in its summary: up to the trial sets, their weights, on to RARE.
FIRST = (
    *("title", "description", "registration_closes_at", "submissions_open_at", "submissions_close_at"),
    *("shares_data", "is_listed", "data_sets"),
)
THEN = (
    *("utilities", "ranked_by", "minimum_eers", "minimum_pitch", "by", "recognizer", "attacker", "training"),
    *("recipe_file", "recipe_text", "track"),
)
# What hardly anybody changes, below everything else.
RARE = (
    *("further", "language", "keeps_duration", "name", "registration_opens_at", "late_until", "speech_kept_until"),
    *("submissions_per_team", "largest_archive_gb", *REQUIRED_PARTS, "description_required"),
    *("data_terms", "holds_evaluations", "organizers"),
)


def rule_choices() -> list[tuple[str, str]]:
    """Return the rules that a challenge may have: name and what they are."""
    return [
        (PROPOSED, "Proposed from the corpus: filled in from its data sets"),
        *((name, f"Those of {title}") for name, title in shipped_recipes()),
        (OWN, "My own recipe (TOML)"),
    ]


class CorpusChoiceField(forms.ModelChoiceField):
    """One of the corpora, each with what it holds."""

    def __init__(self, **options: Any) -> None:
        super().__init__(Corpus.objects.none(), to_field_name="name", required=False, **options)
        self.extents: dict[int, str] = {}

    def label_from_instance(self, obj: Any) -> str:
        return f"{obj}: {self.extents.get(obj.pk, 'nothing')}"


class StartForm(forms.Form):
    """Which speech, by which rules."""

    corpus = CorpusChoiceField(
        label="Speech",
        help_text="The original speech that teams anonymise.",
        widget=forms.RadioSelect,
        blank=True,
        empty_label="No speech: teams submit scores and results only",
        error_messages={"invalid_choice": "Choose a corpus of this list."},
    )
    protocol = RadioField("Rules", "rules", initial=PROPOSED)

    def __init__(self, data: Any = None, *, user: Any, corpus: str = "") -> None:
        super().__init__(data)
        field = cast("CorpusChoiceField", self.fields["corpus"])
        field.queryset = corpora_for_edition(user, None)
        field.extents = {
            one.corpus.pk: ", ".join(
                (counted(one.speakers, "speaker"), counted(one.utterances, "utterance"), duration(one.seconds))
            )
            for one in summaries(field.queryset)
        }
        newest = field.queryset.order_by("-created_at").first()
        field.initial = corpus or (newest and newest.name)
        cast("RadioField", self.fields["protocol"]).choices = rule_choices()

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if {"corpus", "protocol"} <= given.keys():
            for sentence in start_problems(given["corpus"], given["protocol"]):
                self.add_error("corpus", sentence)
        return given


def start_problems(corpus: Corpus | None, protocol: str) -> list[str]:
    """Return why these rules cannot be those of a challenge on this corpus."""
    if protocol == PROPOSED:
        if corpus is None:
            return ["Choose a corpus, from which the rules follow, or other rules below."]
        sets = describe_sets(corpus)
        if not usable_trial_sets(sets):
            return [
                f"Nothing can be evaluated on {corpus}. {' '.join(explain_obstacles(sets)) or 'It has no trial set.'}"
            ]
    elif corpus is not None and protocol in shipped_editions():
        return find_problems({"protocol": protocol, "corpus": corpus}).get("corpus", [])
    return []


def _ticks(label: str, what: str, **options: Any) -> forms.MultipleChoiceField:
    sentences = {"required": f"Choose {what}.", "invalid_choice": "Choose from this list."}
    return forms.MultipleChoiceField(
        label=label, widget=forms.CheckboxSelectMultiple, error_messages=sentences, **options
    )


class ChallengeForm(EditionForm):
    """A new edition. `start`: corpus and rules of the first step; without it they are read from `data`.

    The fields in `RECIPE` are those of a recipe that is proposed from the corpus.
    """

    data_sets = _ticks("Trial sets", "a trial set")
    utilities = _ticks("Metrics of utility", "a metric")
    ranked_by = _ticks("Ranked by", "a metric that ranks")
    minimum_eers = forms.CharField(
        label="Minimum EERs of the conditions (%)",
        help_text="A condition for each: a system competes in those whose limit its average EER meets.",
        max_length=200,
        error_messages={"required": "Give at least one limit, such as 10, or 0 to rank every system."},
    )
    minimum_pitch = forms.FloatField(
        label="Minimum pitch correlation",
        help_text="The rule of VoicePrivacy 2022, while pitch correlation is measured. Empty: no such rule.",
        required=False,
        min_value=-1,
        max_value=1,
        widget=forms.NumberInput(attrs={"step": "any"}),
        error_messages=dict.fromkeys(("invalid", "min_value", "max_value"), "Give a number from -1 to 1."),
    )
    by = RadioField("Who evaluates", "who evaluates", choices=BY, widget=forms.Select)
    attacker = RadioField("Attacker", "one", widget=forms.Select)
    recognizer = RadioField("Recogniser", "one", widget=forms.Select)
    training = RadioField("Attacker trained on anonymised speech", "one", widget=forms.Select)
    further = _ticks(
        "Further attackers",
        "an attacker",
        required=False,
        help_text="Their numbers are shown on the system’s page and do not affect ranks.",
    )
    language = forms.RegexField(
        r"^[a-z]{2}$",
        label="Language",
        help_text="Two letters; the recogniser must support it.",
        error_messages=dict.fromkeys(("required", "invalid"), "Give two small letters, such as en."),
    )
    keeps_duration = forms.BooleanField(
        label="Anonymised speech keeps its duration",
        help_text="Speech that is over twice or under half as long as the original, or silent, is refused.",
        required=False,
    )

    def __init__(
        self, data: Any = None, files: Any = None, *, user: Any, start: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(data, files, user=user)
        fields: Any = self.fields
        fields["protocol"].choices = rule_choices()
        fields["name"].required = False
        fields["description"].widget.attrs["rows"] = 2
        fields["submissions_close_at"].help_text = "Empty: no deadline."
        fields["name"].help_text = "Part of addresses and of the names of systems. Empty: made from the title."
        self.initial = {**self.initial, **(start or {})}
        self.rules_name = str(self["protocol"].value() or "")
        self.speech = self._corpus()
        self._show_terms(self.speech)
        self.sets = describe_sets(self.speech) if self.speech and self.rules_name == PROPOSED else []
        self.is_proposed = bool(usable_trial_sets(self.sets))
        for name in ("protocol", "corpus"):
            fields[name].widget = forms.HiddenInput()
        if self.is_proposed:
            self._fill_in()
        self._leave_out()
        weights = [name for name in fields if name.startswith(WEIGHT)]
        self.order_fields([*FIRST, *weights, *THEN, *RARE])
        self.made_recipe = self._make(self.proposed) if self.is_proposed and not self.is_bound else ""

    def _corpus(self) -> Corpus | None:
        try:
            found = self.fields["corpus"].clean(self["corpus"].value())
        except ValidationError:
            return None
        return cast("Corpus | None", found)

    def _leave_out(self) -> None:
        """Fields that say nothing with these rules."""
        left_out = set() if self.rules_name == OWN else {"recipe_file", "recipe_text"}
        if self.rules_name in shipped_editions():
            tracks = list(load_recipe(self.rules_name).tracks)
            left_out |= {"track"} if len(tracks) == 1 else set()
            if len(tracks) > 1:
                choices = [(one, one) for one in tracks]
                errors = dict.fromkeys(("required", "invalid_choice"), f"Choose one of {', '.join(tracks)}.")
                self.fields["track"] = forms.ChoiceField(
                    label="Track", choices=choices, widget=forms.RadioSelect, error_messages=errors
                )
        if self.is_proposed:
            left_out |= {"track", *REQUIRED_PARTS}
        else:
            left_out |= {*RECIPE}
        for name in left_out & self.fields.keys():
            del self.fields[name]

    # What follows from the corpus --------------------------------------------------------------------

    @cached_property
    def trial_sets(self) -> tuple[SpeechSet, ...]:
        return usable_trial_sets(self.sets)

    @cached_property
    def proposed(self) -> Choices:
        return propose_choices(self.sets, find_engines(), edition="challenge", title=UNTITLED)

    @property
    def left_out(self) -> list[str]:
        """Return why trial sets of the corpus are not offered."""
        return explain_obstacles(self.sets)

    @property
    def few_speakers(self) -> str:
        """Return why ranks on the chosen trial sets would say little; empty where they do not."""
        chosen = self["data_sets"].value() if self.is_proposed else None
        return explain_few_speakers([one for one in self.trial_sets if one.name in (chosen or ())])

    def _fill_in(self) -> None:
        """Offer what the corpus allows and what can run here, with what is usual chosen."""
        usual, evaluation, fields = self.proposed, self.proposed.evaluation, cast("dict[str, Any]", self.fields)
        attackers, recognizers, trainings = offer_attackers(), offer_recognizers(), offer_trainings()
        metrics = [(one, find_metric(one, ESTIMATORS[one]).label) for one in possible_utilities(self.trial_sets)]
        trained_on = ", ".join(
            f"{one.name} ({counted(one.utterances, 'utterance')})" for one in training_sets(self.sets)
        )
        choices = {
            "data_sets": [(one.name, one.name) for one in self.trial_sets],
            "utilities": metrics,
            "ranked_by": metrics,
            "attacker": [*attackers.ready.items()],
            "further": [*attackers.ready.items()],
            "recognizer": [*recognizers.ready.items(), (NONE, "No word error rates")],
            "training": [*trainings.ready.items(), (NONE, "None")],
        }
        for name, offered in choices.items():
            fields[name].choices = offered
        initial = {
            "data_sets": list(usual.sets),
            "utilities": list(usual.utilities),
            "ranked_by": list(usual.ranked_by),
            "minimum_eers": ", ".join(f"{limit:g}" for limit in usual.minimum_eers),
            "minimum_pitch": usual.minimum_pitch_correlation,
            "by": evaluation.by,
            "attacker": next(iter(evaluation.attackers), None),
            "recognizer": evaluation.recognizer or NONE,
            "training": evaluation.training or NONE,
            "language": usual.language,
            "keeps_duration": usual.keeps_duration,
        }
        for name, value in initial.items():
            fields[name].initial = value
        fields["utilities"].help_text = explain_no_gain(self.trial_sets)
        fields["attacker"].help_text = "It ranks the systems, unless one is trained on anonymised speech."
        told = f"If one is trained, it ranks, and teams submit training speech, too: {trained_on}."
        fields["training"].help_text = f"{told} {explain_little_training(self.sets)}".strip()
        self.missing_groups = [*attackers.missing, *recognizers.missing, *trainings.missing]
        if not trained_on:  # the page says what it takes
            del fields["training"]
        for one in self.trial_sets:
            fields[f"{WEIGHT}{one.name}"] = forms.FloatField(
                label=f"Weight of {one.name}",
                required=False,
                initial=1,
                min_value=0,
                max_value=1e6,
                widget=forms.NumberInput(attrs={"step": "any", "aria-label": f"Weight of {one.name}"}),
            )

    # What the page shows -----------------------------------------------------------------------------

    def set_rows(self) -> list[tuple[BoundWidget, SpeechSet, TrialCounts | None, BoundField]]:
        """Return each trial set with its box, its trials and its weight."""
        sets = self.trial_sets if self.is_proposed else ()
        return [
            (box, one, count_trials(one, self.sets), self[f"{WEIGHT}{one.name}"])
            for box, one in zip(self["data_sets"], sets, strict=True)
        ]

    def metric_rows(self) -> list[tuple[BoundWidget, BoundWidget]]:
        """Return each metric of utility with its two boxes: whether it is measured, and whether it ranks."""
        return list(zip(self["utilities"], self["ranked_by"], strict=True))

    def rare_fields(self) -> list[BoundField]:
        """Return the fields that hardly anybody changes."""
        return [self[name] for name in RARE if name in self.fields]

    def has_rare_errors(self) -> bool:
        """Return whether one of them has an error, so that all are shown."""
        return any(field.errors for field in self.rare_fields())

    def shown_recipe(self) -> Recipe | None:
        """Return the recipe as the form has it now; None where it cannot be read yet."""
        if self.rules_name in shipped_editions():
            return load_recipe(self.rules_name)
        text = str(self["recipe_text"].value() or "") if "recipe_text" in self.fields else self.made_recipe
        try:
            return read_recipe_text(text, file="recipe.toml") if text.strip() else None
        except ProblemsError:
            return None

    @property
    def has_wrong_rules(self) -> bool:
        """Return whether a field has an error that the recipe is made of, which is then not what was filled in."""
        return self.is_bound and bool(set(RECIPE) & self.errors.keys())

    def forgive_title(self) -> None:
        """Who looks at the rules first may name the edition later."""
        if not self.data.get("title", "").strip():
            self.errors.pop("title", None)

    # What it takes -----------------------------------------------------------------------------------

    def clean_minimum_eers(self) -> tuple[float, ...]:
        """Ascending limits."""
        words = self.cleaned_data["minimum_eers"].replace(",", " ").replace(";", " ").replace("%", " ").split()
        try:
            limits = tuple(float(word) for word in words)
        except ValueError:
            raise ValidationError("Give numbers with commas between them, such as 10, 20, 30, 40.") from None
        if not limits or list(limits) != sorted(set(limits)) or not all(0 <= one <= 100 for one in limits):
            raise ValidationError("Give ascending limits from 0 to 100, such as 10, 20, 30, 40.")
        if len(limits) > MOST_CONDITIONS:
            raise ValidationError(f"Give at most {MOST_CONDITIONS} limits; these are {len(limits)}.")
        return limits

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        if not given.get("name") and given.get("title") and "name" not in self.errors:
            given["name"] = free_name(given["title"])
        given.setdefault("track", "")
        if not self.is_proposed and self.rules_name == PROPOSED and "corpus" not in self.errors:
            self.add_error("corpus", start_problems(self.speech, self.rules_name))
        return super().clean()

    def save(self) -> Edition | None:  # type: ignore[override]
        """Return the edition of a valid form; who evaluates says which parts a submission must have."""
        if self.is_proposed:
            by = self.cleaned_data.get("by") or "portal"
            self.cleaned_data |= {"audio_required": True, "scores_required": by != "portal"}
        return super().save()

    def _recipe_fields(self, given: dict[str, Any]) -> dict[str, str]:
        if self.rules_name != PROPOSED:
            return super()._recipe_fields(given)
        if not self.is_proposed:
            self.has_recipe = False
            return {"protocol": "", "recipe_text": ""}
        choices = self._chosen(given)
        self.has_recipe = choices is not None
        self.made_recipe = "" if choices is None else self._make(choices)
        return {"protocol": "", "recipe_text": self.made_recipe}

    def _chosen(self, given: dict[str, Any]) -> Choices | None:
        """Return what was chosen; None, with errors of the form, where it does not fit together."""
        engines = {"attacker", "recognizer", "training", "further"} & self.fields.keys()
        by = given.get("by", "")
        if by == "teams":  # what is chosen of engines says nothing then
            for name in engines:
                self.errors.pop(name, None)
        utilities, ranked_by = given.get("utilities") or [], given.get("ranked_by") or []
        if unmeasured := [one for one in ranked_by if one not in utilities]:
            labels = ", ".join(find_metric(one, ESTIMATORS[one]).label for one in unmeasured)
            self.add_error("ranked_by", f"Tick {labels} among the metrics, too: a metric that ranks must be measured.")
        names = self.fields.keys() - {"title", "name", "description", "organizers", *DATES}
        recognizer = "" if given.get("recognizer") == NONE else given.get("recognizer", "")
        if by != "teams" and WER in utilities and "recognizer" not in self.errors:
            self._check_recognizer(recognizer, given.get("language", ""))
        self._check_weights(given)
        if names & self.errors.keys():
            return None
        evaluation = Evaluation("teams")
        if by != "teams":
            training = given.get("training", NONE)
            attackers = dict.fromkeys([given["attacker"], *given["further"]])
            evaluation = Evaluation(
                by, tuple(attackers), recognizer if WER in utilities else "", "" if training == NONE else training
            )
        weights = {one.name: given[f"{WEIGHT}{one.name}"] for one in self.trial_sets}
        return Choices(
            edition=given.get("name") or "challenge",
            title=given.get("title") or UNTITLED,
            sets=tuple(given["data_sets"]),
            utilities=tuple(utilities),
            ranked_by=tuple(ranked_by),
            evaluation=evaluation,
            minimum_eers=given["minimum_eers"],
            minimum_pitch_correlation=given["minimum_pitch"],
            weights={name: 1.0 if weight is None else weight for name, weight in weights.items()},
            language=given["language"],
            keeps_duration=given["keeps_duration"],
        )

    def _check_weights(self, given: dict[str, Any]) -> None:
        """Every split has a set that counts."""
        chosen = [one for one in self.trial_sets if one.name in given.get("data_sets", ())]
        splits: dict[str, list[str]] = {}
        for one in chosen:
            splits.setdefault(one.usual_split, []).append(f"{WEIGHT}{one.name}")
        for split, names in splits.items():
            if all(given.get(name, 1) == 0 for name in names):
                self.add_error(names[0], f"Give one of the sets of the split {split} a weight above 0.")

    def _check_recognizer(self, recognizer: str, language: str) -> None:
        known = (offer_recognizers().languages or {}).get(recognizer, ())
        if not recognizer:
            self.add_error("recognizer", "Choose a recogniser, or remove the word error rate from the metrics.")
        elif language and language not in known:
            self.add_error("recognizer", f"It knows {', '.join(known)} only; the language of the speech is {language}.")

    def _make(self, choices: Choices) -> str:
        assert self.speech is not None  # noqa: S101
        return write_recipe(make_recipe(self.sets, choices), self.speech)
