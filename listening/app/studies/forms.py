"""The forms of a study: a new one in five fields, all of its fields, one of its texts, and an extension."""

from __future__ import annotations

from itertools import groupby
from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError

from listening.models import Study, StudyText
from listening.studies import plans, services
from listening.studies.own_questions import read_questions
from listening.studies.pools import set_problems, sets_to_hear, submissions_to_hear
from listening.studies.selectors import editions_to_study
from listening.studies.study_defaults import PRESETS, make_study
from listening.studies.study_fields import (
    ABSENT,
    FORM_FIELDS_FIXED_AFTER_LAUNCH,
    LONGEST_TEXT,
    MOST_EVALUATORS,
    MOST_TRIALS,
    NARROW,
    OUTCOME_WORDS,
    PARAMETER_WORDS,
    SAVED,
    SCREENED,
    SECTIONS,
    SHIPPED_QUESTIONS,
    FieldGroup,
    FormSection,
    StudyNameField,
    WholeField,
    in_capitals,
    initial_of,
    language_codes,
)
from listening.studies.study_rules import (
    BRIDGE_AT_MOST,
    GOLD_AT_MOST,
    LOCKED_AFTER_LAUNCH,
    PRACTICE_AT_MOST,
    RATED,
    RELAXATIONS,
    StudyProblems,
    plan_number_problems,
    tasks_of,
)
from portal.challenges.models import DataSet, Edition
from portal.core.fields import LineField
from portal.jobs.services import NotPossible
from portal.submissions.models import Submission


class NewStudyForm(forms.Form):
    """What a study begins with; everything else gets a default from what the edition holds, to be changed after."""

    edition: forms.ModelChoiceField[Edition] = forms.ModelChoiceField(
        label="Edition",
        queryset=Edition.objects.none(),
        empty_label=None,
        error_messages={
            "required": "Choose an edition that you organise.",
            "invalid_choice": "Choose an edition that you organise.",
        },
    )
    title = LineField(label="Title", max_length=120, error_messages={"required": "Give the study a title."})
    name = StudyNameField()
    form = forms.ChoiceField(
        label="What evaluators do",
        choices=in_capitals(Study.Form.choices),
        widget=forms.RadioSelect,
        initial=Study.Form.RATING,
        error_messages={"required": "Choose what evaluators do."},
    )
    preset = forms.ChoiceField(
        label="Size to begin with",
        choices=in_capitals((name, preset.words) for name, preset in PRESETS.items()),
        widget=forms.RadioSelect,
        initial="2022",
        help_text="Every number can be changed afterwards.",
        error_messages={"required": "Choose a size to begin with."},
    )

    def __init__(self, data: Any = None, *, user: Any, edition: Edition | None = None) -> None:
        self.user = user
        super().__init__(data, initial={"edition": edition})
        self.fields["edition"].queryset = editions_to_study(user)  # type: ignore[attr-defined]

    def save(self) -> Study | None:
        """The new study of a valid form; None with errors of the form where it does not hold together."""
        return _or_errors(self, make_study, by=self.user, **self.cleaned_data)


class StudyForm(forms.Form):
    """Every field of a study; what can no longer change is shown and left alone."""

    title = LineField(label="Title", max_length=120, error_messages={"required": "Give the study a title."})
    name = StudyNameField()
    systems: forms.ModelMultipleChoiceField[Submission] = forms.ModelMultipleChoiceField(
        label="Systems",
        queryset=Submission.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text="Systems whose accepted submission holds anonymised trial utterances.",
    )
    data_sets: forms.ModelMultipleChoiceField[DataSet] = forms.ModelMultipleChoiceField(
        label="Data sets",
        queryset=DataSet.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text="Sample A comes from trial sets, sample B, always original, from enrolment sets.",
    )
    tasks = forms.MultipleChoiceField(
        label="Tasks",
        choices=in_capitals((task.value, task.label) for task in RATED),
        widget=forms.CheckboxSelectMultiple,
        help_text="They are asked in this order, as in 2022.",
        error_messages={"required": "Choose at least one task."},
    )
    pages = forms.ChoiceField(label="Pages", choices=in_capitals(Study.Pages.choices), widget=forms.RadioSelect)
    scale_points = WholeField("Points of the scale", 2, 10, "From 1 to this number; 10 in 2022.")
    plays_at_most = WholeField("Plays of a sample at most", 1, 20, "Empty: as often as wanted.", required=False)
    role_play = forms.ChoiceField(
        label="Role play",
        choices=in_capitals(Study.RolePlay.choices),
        widget=forms.RadioSelect,
        help_text="What evaluators imagine to be; its wording stands on the page of texts.",
    )
    languages = forms.CharField(
        label="Languages",
        help_text="Codes with commas between them, the first is the default. English (en) and French (fr) are shipped.",
        max_length=80,
        error_messages={"required": "Give at least one language, such as en."},
    )
    evaluators = WholeField("Evaluators", 1, MOST_EVALUATORS)
    trials_per_evaluator = WholeField("Trials of each evaluator", 1, MOST_TRIALS)
    originals_per_evaluator = WholeField("Of which original", 0, MOST_TRIALS)
    practice_trials = WholeField("Practice trials", 0, PRACTICE_AT_MOST, "Come first and count nowhere.")
    gold_trials = WholeField(
        "Control trials", 0, GOLD_AT_MOST, "Original pairs with a known answer; they show who does not listen."
    )
    bridge_trials = WholeField(
        "Bridge trials", 0, BRIDGE_AT_MOST, "Rated by everybody and left out of the scores: how far evaluators agree."
    )
    board_samples = WholeField("Samples on a board", 6, 16)
    board_dimensions = forms.TypedChoiceField(
        label="Board",
        choices=[("1", "A line"), ("2", "A plane")],
        coerce=int,
        widget=forms.RadioSelect,
        error_messages={"required": "Choose a line or a plane."},
    )
    board_groups = forms.BooleanField(label="Evaluators draw groups", required=False)
    relaxations = forms.MultipleChoiceField(
        label="What may give way where there are too few recordings",
        choices=in_capitals(RELAXATIONS.items()),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text="The certificate states each of them.",
    )
    seed = WholeField("Seed", 0, 2**31 - 1, "The same seed and the same recordings give the same design.")
    pay_per_hour = forms.DecimalField(
        label="Pay per hour",
        min_value=0,
        max_value=1000,
        decimal_places=2,
        error_messages=dict.fromkeys(
            ("required", "invalid", "min_value", "max_value", "max_decimal_places", "max_digits"),
            "Give an amount from 0 to 1000, such as 12 or 12.50.",
        ),
    )
    currency = forms.RegexField(
        r"[A-Z]{3}",
        label="Currency",
        error_messages={
            "required": "Give a code such as EUR.",
            "invalid": "Give a code of three capitals, such as EUR.",
        },
    )
    questions = forms.MultipleChoiceField(
        label="Questions before the trials",
        choices=[(name, one["labels"]["en"]) for name, one in SHIPPED_QUESTIONS.items()],
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )
    own_questions = forms.CharField(
        label="Own questions",
        required=False,
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="One on each line, such as “Do you sing? = yes; no” or “Hours of music a day? (optional) = number”. "
        "Behind // stands the next language: “Do you sing? // Chantez-vous ? = yes // oui; no // non”.",
    )
    sound = forms.BooleanField(label="Sound test", required=False, help_text="One tap that also lets the browser play.")
    headphones = forms.ChoiceField(
        label="Headphone check",
        choices=[
            ("none", "None"),
            ("huggins", "Huggins pitch"),
            ("woods", "Tones in antiphase (Woods)"),
            ("both", "Both"),
        ],
        widget=forms.RadioSelect,
    )
    headphones_gate = forms.ChoiceField(
        label="Who fails the headphone check",
        choices=[("flag", "Goes on and is flagged"), ("gate", "Is turned away")],
        widget=forms.RadioSelect,
        help_text="One in five honest people with headphones fails such a check.",
    )
    headphones_attempts = WholeField("Attempts at the headphone check", 1, plans.ATTEMPTS_AT_MOST)
    native_languages = forms.CharField(
        label="Native languages that may take part",
        required=False,
        max_length=200,
        help_text="Codes with commas between them, such as en, fr. Empty: everybody.",
    )
    gold_gate = forms.ChoiceField(
        label="Who misses the control trials",
        choices=[("flag", "Is flagged"), ("gate", "Ends with the code for missed control trials")],
        widget=forms.RadioSelect,
    )
    platform = forms.ChoiceField(
        label="Evaluators come from", choices=in_capitals(Study.Platform.choices), widget=forms.RadioSelect
    )
    parameter_person = LineField(label="Parameter for the person", required=False, max_length=60)
    parameter_study = LineField(label="Parameter for the study", required=False, max_length=60)
    parameter_session = LineField(label="Parameter for the session", required=False, max_length=60)
    code_complete = LineField(label=OUTCOME_WORDS["complete"], required=False, max_length=64)
    code_screened_out = LineField(label=OUTCOME_WORDS["screened-out"], required=False, max_length=64)
    code_failed_attention = LineField(label=OUTCOME_WORDS["failed-attention"], required=False, max_length=64)
    code_technical = LineField(label=OUTCOME_WORDS["technical"], required=False, max_length=64)
    confirm_by_api = forms.BooleanField(label="Confirm each submission with Prolific", required=False)
    lease_minutes = WholeField("Minutes without a sign of life until a block is offered to somebody else", 5, 24 * 60)

    def __init__(self, data: Any = None, *, study: Study) -> None:
        self.study = study
        super().__init__(data, initial=initial_of(study))
        self.fields["systems"].queryset = submissions_to_hear(study.edition, study)  # type: ignore[attr-defined]
        self.fields["data_sets"].queryset = sets_to_hear(study.edition)  # type: ignore[attr-defined]
        for name in ABSENT[Study.Form(study.form)]:
            del self.fields[name]
        if study.is_launched:
            for name in self.fields.keys() & FORM_FIELDS_FIXED_AFTER_LAUNCH:
                self.fields[name].disabled = True

    @property
    def sections(self) -> list[FormSection]:
        """The parts of the form with their fields; small ones that follow each other stand side by side."""
        found = []
        for name, title, names in SECTIONS:
            fields = [self[field] for field in names if field in self.fields]
            groups = [
                FieldGroup(is_narrow, list(members))
                for is_narrow, members in groupby(fields, key=lambda one: one.name in NARROW)
            ]
            found.append(FormSection(name, title, groups))
        return found

    def clean_languages(self) -> list[str]:
        codes = language_codes(self.cleaned_data["languages"])
        if not codes:  # commas alone
            raise ValidationError(self.fields["languages"].error_messages["required"])
        return codes

    def clean_native_languages(self) -> list[str]:
        return language_codes(self.cleaned_data["native_languages"])

    def clean(self) -> dict[str, Any]:
        given = cast("dict[str, Any]", super().clean())
        given["form"] = self.study.form
        given["tasks"] = tasks_of(self.study.form, given.get("tasks", []))
        for field, sentences in plan_number_problems(given).items():
            if field in self.fields:
                self.add_error(field, sentences)
        if given.get("data_sets") and (problems := set_problems(given["data_sets"])):
            self.add_error("data_sets", problems)
        self._take("screening", plans.parse_screening, _screening(given), "headphones")
        self._clean_questionnaire(given)
        self._clean_platform(given)
        return given

    def _clean_questionnaire(self, given: dict[str, Any]) -> None:
        languages = given.get("languages") or self.study.languages
        chosen = [SHIPPED_QUESTIONS[name] for name in SHIPPED_QUESTIONS if name in given.get("questions", [])]
        try:
            own = read_questions(given.get("own_questions", ""), languages=languages, taken=SHIPPED_QUESTIONS)
        except plans.PlanError as error:
            self.add_error("own_questions", error.problems)
            own = []
        self._take("questionnaire", plans.parse_questionnaire, [*chosen, *own], "own_questions")

    def _clean_platform(self, given: dict[str, Any]) -> None:
        platform = given.get("platform", self.study.platform)
        parameters = {name: given.get(f"parameter_{name}", "") for name in PARAMETER_WORDS}
        codes = {name: given.get(f"code_{name.replace('-', '_')}", "") for name in OUTCOME_WORDS}
        is_prolific = platform == Study.Platform.PROLIFIC
        given_codes = {name: code for name, code in codes.items() if code and is_prolific}
        settings: dict[str, Any] = {
            "parameters": {name: word for name, word in parameters.items() if word and platform != "mturk"},
            "codes": given_codes,
            "confirm_by_api": bool(given.get("confirm_by_api")) and is_prolific,
        }
        # Prolific tells its code once the study stands there, which needs its link: only the launch asks for it.
        whole = settings | ({"codes": {"complete": "NOT-YET"} | given_codes} if is_prolific else {})
        checked = Study(platform=platform, platform_settings=whole)
        self._take("platform_settings", lambda _: plans.parse_platform(checked), settings, "platform")

    def _take(self, name: str, parse: Any, value: Any, field: str) -> None:
        """Put a value among the cleaned ones, with every fault that its parser finds as an error of a field."""
        try:
            parse(value)
        except plans.PlanError as error:
            self.add_error(field, error.problems)
        self.cleaned_data[name] = value

    def save(self, *, by: Any) -> Study | None:
        """The changed study of a valid form; None with errors of the form where it does not hold together."""
        fields = {name: self.cleaned_data[name] for name in SAVED if name in self.cleaned_data}
        relations = {name: self.cleaned_data[name] for name in ("systems", "data_sets")}
        if self.study.is_launched:
            fields = {name: value for name, value in fields.items() if name not in LOCKED_AFTER_LAUNCH}
            relations = {}
        return _or_errors(self, services.change_study, study=self.study, by=by, **fields, **relations)


class TextForm(forms.Form):
    """One text in one language."""

    kind = forms.ChoiceField(choices=StudyText.Kind.choices, widget=forms.HiddenInput)
    language = forms.CharField(widget=forms.HiddenInput, max_length=8)
    text = forms.CharField(
        label="Text",
        help_text="Markdown: empty lines between paragraphs, - before the items of a list, ## before a heading.",
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 16}),
        error_messages={"required": "Write what evaluators shall read."},
    )

    def __init__(self, data: Any = None, *, study: Study, kind: str, language: str) -> None:
        self.study = study
        newest = services.newest_text(study, kind, language)
        initial = {"kind": kind, "language": language, "text": newest.text if newest else ""}
        super().__init__(data, initial=initial, prefix=f"{kind}-{language}")

    def clean_text(self) -> str:
        return cast("str", self.cleaned_data["text"]).replace("\r\n", "\n").replace("\0", "").strip()

    def clean_language(self) -> str:
        language = cast("str", self.cleaned_data["language"])
        if language not in self.study.languages:
            raise ValidationError(f"The study has no language {language}. Add it on the page “Edit”.")
        return language

    def save(self, *, by: Any) -> StudyText | None:
        """The new version of a valid form; None where it says nothing new, or with an error of the form."""
        return cast(
            "StudyText | None", _or_errors(self, services.change_text, study=self.study, by=by, **self.cleaned_data)
        )


class ExtendForm(forms.Form):
    """How many more evaluators a study shall have."""

    blocks = WholeField(
        "More evaluators", 1, 500, "Each gets a block of trials of their own, balanced with the others."
    )


def _screening(given: dict[str, Any]) -> dict[str, Any]:
    """Of the fields that were readable and the form has."""
    found = {name: given[name] for name in SCREENED if name in given}
    return plans.DEFAULT_SCREENING | found


def _or_errors(form: forms.Form, service: Any, /, **arguments: Any) -> Any:
    """What a service returns; None with errors of the form where it refuses."""
    try:
        return service(**arguments)
    except StudyProblems as error:
        for field, sentences in error.problems.items():
            form.add_error(field if field in form.fields else None, sentences)
    except NotPossible as reason:
        form.add_error(None, str(reason))
    return None
