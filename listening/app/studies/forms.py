"""The forms of a study: a new one in a few fields, all of its fields, and an extension."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import validate_slug

from common.errors import NotPossible, ProblemsError
from listening.analysis.reading.inputs import ORIGINAL
from listening.app.models import LOUDNESS, Study
from listening.app.studies import rules, selectors, services, settings
from listening.app.studies.designing import extend_design
from listening.app.studies.services import make_study
from listening.app.studies.settings import DEFAULT_SCREENING, SHIPPED_QUESTIONS
from listening.app.studies.sizes import describe_sizes
from listening.questions import (
    FEWEST_TO_SWAP,
    FIRST_PRESET,
    NEEDS_REFERENCE,
    PAIRED,
    SWITCHING,
    list_presets,
    load_preset,
)
from listening.stimuli.anchors import list_anchors, name_anchor, rate_of_anchor
from portal.challenges.models import DataSet, Edition, Role
from portal.core.fields import LineField, SharedForm
from portal.submissions.models import Submission

LONGEST_TEXT = 20_000
MOST_EVALUATORS, MOST_TRIALS, MOST_ITEMS, HIGHEST_PAY = 1000, 200, 2000, 1000
NAME_ERRORS = {
    "required": "Give a short name, such as listening2026.",
    "invalid": "Use small letters a to z, digits, hyphens and underscores only, such as listening2026.",
}
OPTIONAL_CHECK = [("none", "None"), ("flag", "Continue after a failure, with a flag"), ("gate", "End the session")]
RATES = [(rate, f"{rate / 1000:g} kHz") for rate in rules.RATES_HZ]
CHANNELS = [(1, "Mono"), (2, "Stereo")]
CODES = {name: f"code_{name.replace('-', '_')}" for name in settings.OUTCOMES}
PARAMETERS = {name: f"parameter_{name}" for name in ("person", "study", "session")}


class WholeField(forms.IntegerField):
    """A whole number of a range; every problem is one sentence that names the range."""

    def __init__(self, label: str, lowest: int, highest: int, help_text: str = "", **options: Any) -> None:
        sentence = f"Give a whole number from {lowest} to {highest}."
        errors = dict.fromkeys(("required", "invalid", "min_value", "max_value"), sentence)
        super().__init__(
            label=label, min_value=lowest, max_value=highest, help_text=help_text, error_messages=errors, **options
        )


class StudyNameField(forms.CharField):
    def __init__(
        self,
        help_text: str = "Small letters, digits, hyphens and underscores; part of the address of its pages.",
        **options: Any,
    ) -> None:
        options |= {"validators": [validate_slug], "error_messages": NAME_ERRORS}
        super().__init__(label="Short name", help_text=help_text, max_length=60, **options)

    def clean(self, value: Any) -> str:
        name = super().clean(value)
        if name != name.lower():
            raise ValidationError(f"Expected small letters, found {name}.")
        return cast("str", name)


class ResponsibleField(LineField):
    def __init__(self) -> None:
        super().__init__(
            label="Responsible body",
            required=False,
            max_length=200,
            help_text="Who is responsible for the study, such as a university and its city.",
        )


def keep_months_field() -> WholeField:
    help_text = (
        f"Of evaluators: {rules.PERSONAL_DATA}, at most so long after the study is closed. Deleting it then is up to "
        "you; answers stay with the results."
    )
    return WholeField("Personal data is kept for (months)", 1, 1200, help_text, required=False)


class EditionField(forms.ModelChoiceField):
    """One of the editions that somebody organises; the form says which ones these are."""

    def __init__(self, help_text: str = "") -> None:
        errors = dict.fromkeys(("required", "invalid_choice"), "Choose an edition that you organise.")
        queryset = Edition.objects.none()
        super().__init__(queryset, label="Edition", empty_label=None, help_text=help_text, error_messages=errors)


def in_capitals(choices: Iterable[tuple[Any, Any]]) -> list[tuple[str, str]]:
    """Return choices whose words begin with a capital, as labels do."""
    return [(str(value), str(words)[:1].upper() + str(words)[1:]) for value, words in choices]


def radios(label: str, choices: Any, help_text: str = "", missing: str = "", **options: Any) -> forms.ChoiceField:
    """Return one of several, all of them in sight; `missing` is said where none is chosen."""
    options |= {"error_messages": {"required": missing}} if missing else {}
    return forms.ChoiceField(
        label=label, choices=in_capitals(choices), widget=forms.RadioSelect, help_text=help_text, **options
    )


def boxes(label: str, choices: Any, help_text: str = "") -> forms.MultipleChoiceField:
    """Return any of several or none, all of them in sight."""
    return forms.MultipleChoiceField(
        label=label,
        choices=in_capitals(choices),
        widget=forms.CheckboxSelectMultiple,
        help_text=help_text,
        required=False,
    )


# Which fields belong to some forms of a study alone.
OF_BOARDS = ("board_samples", "board_dimensions", "board_groups")
OF_RATINGS = (*("pages", "practice_trials", "gold_trials", "bridge_trials", "gold_gate", "relaxations"),)
OF_EDITIONS, SOUND = ("systems", "data_sets", "further"), ("rate_hz", "channels", "loudness")
PRECISION = ("half_width", "most_evaluators")
OF_CROSSED = (*PRECISION, "further", "items_at_most")
OF_OTHERS = ("originals_per_evaluator", "bridge_trials", "relaxations")
ABSENT = {
    Study.Form.RATING: OF_BOARDS,
    Study.Form.ANSWERS: OF_BOARDS,
    Study.Form.LINKABILITY: (*OF_RATINGS, "originals_per_evaluator"),
    Study.Form.TRANSCRIPTION: ("pages", *OF_BOARDS),
}
# Short enough to stand side by side, as are the names of parameters and the codes.
NARROW = frozenset(
    {
        *("plays_at_most", "evaluators", "trials_per_evaluator", "items_at_most", "originals_per_evaluator"),
        *("practice_trials", "gold_trials", "bridge_trials", "board_samples", "seed", "pay_per_hour", "currency"),
        *PARAMETERS.values(),
        *CODES.values(),
    }
)
SCREENED = tuple(asdict(settings.Screening()))
# By the id of its heading each section: its title and its fields.
SECTIONS = {
    "study": ("The study", ("title", "name")),
    "heard": ("What is heard", ("systems", "further", "data_sets", "against", *SOUND)),
    "asked": ("How it is asked", ("pages", "orders", "plays_at_most", "role_play", "languages")),
    "plan": (
        "Evaluators and trials",
        (
            *("evaluators", *PRECISION, "trials_per_evaluator", "items_at_most", "originals_per_evaluator"),
            *("practice_trials", "gold_trials", "bridge_trials", *OF_BOARDS, "relaxations"),
            *("seed", "pay_per_hour", "currency"),
        ),
    ),
    "before": ("Before the trials", ("questions", "own_questions", *SCREENED)),
    "consent": ("What evaluators are told before they consent", rules.CONSENT_FIELDS),
    "platform": (
        "Where evaluators come from",
        (
            *("platform", "parameter_person", "parameter_study", "parameter_session", "code_complete"),
            *("code_screened_out", "code_failed_attention", "code_technical", "confirm_by_api", "lease_minutes"),
            "places_per_network",
        ),
    ),
}
FOLDED = frozenset({"before", "platform"})  # which start with what most studies take
PLAN_SECTIONS = frozenset({"heard", "asked", "plan"})
# The fields of a study that its form fills in: its own ones, and those that are made of several.
_OF_STUDY = {field.name for field in Study._meta.concrete_fields}
SAVED = (
    *(name for _, names in SECTIONS.values() for name in names if name in _OF_STUDY),
    *("questionnaire", "screening", "platform_settings"),
)
FORM_FIELDS_FIXED_AFTER_LAUNCH = rules.LOCKED_AFTER_LAUNCH | {"questions", "own_questions", *SCREENED}


def read_initial(study: Study) -> dict[str, Any]:
    """Return what the form of a study shows."""
    values: dict[str, Any] = {name: getattr(study, name) for name in SAVED}
    own = [one for one in study.questionnaire if one.get("name") not in SHIPPED_QUESTIONS]
    screening = asdict(settings.Screening()) | DEFAULT_SCREENING | study.screening
    parameters, codes = (study.platform_settings.get(name, {}) for name in ("parameters", "codes"))
    values |= {name: screening[name] for name in SCREENED}
    values |= {field: parameters.get(name, "") for name, field in PARAMETERS.items()}
    values |= {field: codes.get(name, "") for name, field in CODES.items()}
    return values | {
        "systems": list(selectors.heard_submissions(study).values()),
        "data_sets": list(study.data_sets.all()),
        "further": selectors.list_further(study),
        "languages": ", ".join(study.languages),
        "native_languages": ", ".join(screening["native_languages"]),
        "board_dimensions": str(study.board_dimensions),
        "questions": [one["name"] for one in study.questionnaire if one.get("name") in SHIPPED_QUESTIONS],
        "own_questions": settings.write_questions(own, languages=study.languages),
        "confirm_by_api": study.platform_settings.get("confirm_by_api", False),
    }


class LanguagesField(forms.CharField):
    """Takes codes of languages with commas between them, each once."""

    def clean(self, value: Any) -> list[str]:
        text = super().clean(", ".join(map(str, value)) if isinstance(value, list) else value)
        codes = list(dict.fromkeys(text.lower().replace(";", ",").replace(",", " ").split()))
        if wrong := [code for code in codes if not settings.LANGUAGE.fullmatch(code) or len(code) > 8]:
            raise ValidationError([f"Expected a code of a language such as en or fr, found {code}." for code in wrong])
        if self.required and not codes:  # commas alone
            raise ValidationError(self.error_messages["required"])
        return codes


def propose_practice(form: forms.Form) -> None:
    """Let practice trials be left out, and say what a new test then has."""
    if practice := form.fields.get("practice_trials"):
        practice.required = False
        proposed = "Empty: one for 10 items, up to 3, of MOS, P.835, DCR, CCR and MUSHRA."
        practice.help_text = f"{practice.help_text} {proposed}"


def systems_field(help_text: str) -> forms.ModelMultipleChoiceField[Submission]:
    """Return the systems of an edition, all of them in sight; the form says which ones these are."""
    queryset, widget = Submission.objects.none(), forms.CheckboxSelectMultiple
    return forms.ModelMultipleChoiceField(
        label="Systems", queryset=queryset, widget=widget, required=False, help_text=help_text
    )


class StudyFields(SharedForm):
    """Holds every field of a study with its limits, and checks what several of them make together.

    Attributes:
        shown: the names of the fields of a form, in their order; empty for all.
    """

    shown: Sequence[str] = ()
    study: Study

    rate_hz = forms.TypedChoiceField(label="Sampling rate", choices=RATES, coerce=int)
    channels = forms.TypedChoiceField(label="Channels", choices=CHANNELS, coerce=int)
    loudness = radios("Loudness", LOUDNESS, "What is made equal for all recordings.", "Choose what is made equal.")
    title = LineField(label="Title", max_length=120, error_messages={"required": "Give the study a title."})
    name = StudyNameField()
    systems = systems_field("Systems whose accepted submission holds anonymised trial utterances.")
    further = boxes("Further conditions", [], "An anchor is original speech without what lies above a frequency.")
    data_sets: forms.ModelMultipleChoiceField[DataSet] = forms.ModelMultipleChoiceField(
        label="Data sets",
        queryset=DataSet.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text="Trial sets give single utterances and samples A, enrolment sets samples B, always original.",
    )
    against = forms.ChoiceField(label="Pairs", required=False)
    items_at_most = WholeField(
        "Utterances at most",
        1,
        MOST_ITEMS,
        "Drawn by lot, evenly over speakers. Empty: all that every condition has.",
        required=False,
    )
    pages = radios("Pages", Study.Pages.choices)
    orders = radios("Order of questions", Study.ORDERS, "ITU-T P.835 asks half of the listeners in the other order.")
    plays_at_most = WholeField("Plays of a sample at most", 0, 20, "Empty or 0: no limit.", required=False)
    role_play = radios(
        "Role play", Study.RolePlay.choices, "The role that evaluators imagine; its wording is on the page “Texts”."
    )
    languages = LanguagesField(
        label="Languages",
        help_text="Codes with commas between them, the first is the default. English (en) and French (fr) are shipped.",
        max_length=80,
        error_messages={"required": "Give at least one language, such as en."},
    )
    evaluators = WholeField("Evaluators", 1, MOST_EVALUATORS)
    half_width = forms.FloatField(
        label="Wanted half width of intervals",
        required=False,
        min_value=0.001,
        max_value=100,
        help_text="Such as 0.2 points, or 0.05 of a share. More evaluators are admitted until every main number has a "
        "95 % interval as narrow as this. Empty: the number of evaluators is fixed.",
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"), "Give a number from 0.001 to 100, such as 0.2."
        ),
    )
    most_evaluators = WholeField(
        "Evaluators at most", 1, MOST_EVALUATORS, "With a wanted half width: nobody is admitted beyond.", required=False
    )
    trials_per_evaluator = WholeField("Trials of each evaluator", 1, MOST_TRIALS)
    originals_per_evaluator = WholeField("Of which original", 0, MOST_TRIALS)
    practice_trials = WholeField("Practice trials", 0, rules.PRACTICE_AT_MOST, "They come first and are not counted.")
    gold_trials = WholeField(
        "Control trials",
        0,
        rules.GOLD_AT_MOST,
        "Their answer is known; they show who is inattentive. DCR, CCR, AB, ABX and comparisons of voices have them.",
    )
    bridge_trials = WholeField(
        "Bridge trials",
        0,
        rules.BRIDGE_AT_MOST,
        "Rated by everybody and left out of the scores: how far evaluators agree.",
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
    relaxations = boxes(
        "Rules to relax if recordings run short",
        rules.RELAXATIONS.items(),
        "The certificate states each of them.",
    )
    seed = WholeField("Seed", 0, 2**31 - 1, "The same seed and the same recordings give the same design.")
    pay_per_hour = forms.DecimalField(
        label="Pay per hour",
        min_value=0,
        max_value=HIGHEST_PAY,
        decimal_places=2,
        help_text="0 for volunteers. Prolific and Mechanical Turk pay: about 12 EUR is usual.",
        error_messages=dict.fromkeys(
            ("required", "invalid", "min_value", "max_value", "max_decimal_places", "max_digits"),
            f"Give an amount from 0 to {HIGHEST_PAY}, such as 12 or 12.50.",
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
    questions = boxes(
        "Questions before the trials",
        [(name, one["labels"]["en"]) for name, one in SHIPPED_QUESTIONS.items()],
    )
    own_questions = forms.CharField(
        label="Own questions",
        required=False,
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="One on each line, such as “Do you sing? = yes; no” or “Hours of music a day? (optional) = number”. "
        "Put the translation after //: “Do you sing? // Chantez-vous ? = yes // oui; no // non”.",
    )
    sound = forms.BooleanField(label="Sound test", required=False, help_text="One tap that also lets the browser play.")
    headphones = radios(
        "Headphone check",
        [("none", "None"), ("huggins", "Huggins pitch"), ("woods", "Tones in antiphase (Woods)"), ("both", "Both")],
    )
    headphones_gate = radios(
        "Failed headphone check",
        [("flag", "Continue, with a flag"), ("gate", "End the session")],
        "About one in five people with headphones fails such a check.",
    )
    bandwidth = radios(
        "Bandwidth check",
        OPTIONAL_CHECK,
        "Five pairs of noise, three of them with one part low-passed at 3.5 kHz, or 7 kHz where stimuli have 32 kHz or "
        "more (after ITU-T P.808). All have to be right: who fails may have a narrow-band headset.",
    )
    environment = radios(
        "Environment check",
        OPTIONAL_CHECK,
        "Four pairs of a voice with noise 50 and 40 dB below it; three have to be right (after ITU-T P.808). Who fails "
        "may be in a noisy place.",
    )
    headphones_attempts = WholeField("Attempts at each of these checks", 1, settings.ATTEMPTS_AT_MOST)
    normal_hearing = forms.BooleanField(
        label="Only who knows of no difficulty in hearing may take part",
        required=False,
        help_text="By their own answer, which is then asked of everybody.",
    )
    native_languages = LanguagesField(
        label="Native languages that may take part",
        required=False,
        max_length=200,
        help_text="Codes with commas between them, such as en, fr. Empty: everybody.",
    )
    gold_gate = radios(
        "Missed control trials",
        [("flag", "Is flagged"), ("gate", "End with the code for missed control trials")],
    )
    platform = radios("Evaluators come from", Study.Platform.choices)
    parameter_person = LineField(label="Parameter for the person", required=False, max_length=60)
    parameter_study = LineField(label="Parameter for the study", required=False, max_length=60)
    parameter_session = LineField(label="Parameter for the session", required=False, max_length=60)
    code_complete = LineField(label="Completion code", required=False, max_length=64)
    code_screened_out = LineField(label="Code for screened-out evaluators", required=False, max_length=64)
    code_failed_attention = LineField(label="Code for missed control trials", required=False, max_length=64)
    code_technical = LineField(label="Code for a technical error", required=False, max_length=64)
    confirm_by_api = forms.BooleanField(label="Confirm each submission with Prolific", required=False)
    responsible = ResponsibleField()
    contact = LineField(
        label="Contact",
        required=False,
        max_length=200,
        help_text="Where evaluators ask about the study and their pay, such as an e-mail address.",
    )
    keep_months = keep_months_field()
    lease_minutes = WholeField("Release an inactive participant's place after (minutes)", 5, 24 * 60)
    places_per_network = WholeField(
        "Places for one network address at most",
        1,
        MOST_EVALUATORS,
        "Limit for those who hold a place at once and for those who begin within an hour. Empty: a quarter of the "
        "places, at least 3; here {share} of {places}. Raise it for a laboratory or a class.",
        required=False,
    )

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields = {name: self.fields[name] for name in self.shown or self.fields}
        for name in self.fields.keys() & set(rules.CONSENT_FIELDS):  # a draft can do without, a launch cannot
            self.fields[name].needed_for = "the launch"  # type: ignore[attr-defined]

    def clean_plays_at_most(self) -> int | None:
        return self.cleaned_data["plays_at_most"] or None

    def clean_numbers(self, given: Mapping[str, Any], **more: Any) -> None:
        """Make every problem of `plan_number_problems` an error of its field."""
        for field, sentences in rules.plan_number_problems({**given, **more}).items():
            self.add_error(field if field in self.fields else None, sentences)

    def clean_settings(self, given: dict[str, Any]) -> None:
        """Put among the values what a study keeps of several of its fields, with every problem as an error of one."""
        screening = DEFAULT_SCREENING | {
            name: given[name]
            for name in SCREENED
            if name in given and (name in DEFAULT_SCREENING or given[name] != getattr(settings.Screening, name))
        }
        given["screening"] = screening
        given["questionnaire"] = self._make_questionnaire(given)
        given["platform_settings"] = self._make_platform(given)

    def _make_questionnaire(self, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        languages = given.get("languages") or self.study.languages
        wanted = given.get("questions", SHIPPED_QUESTIONS)
        try:
            own = settings.read_questions(given.get("own_questions", ""), languages=languages, taken=SHIPPED_QUESTIONS)
        except ProblemsError as error:
            self.add_error("own_questions", error.problems)
            own = []
        return [*(one for name, one in SHIPPED_QUESTIONS.items() if name in wanted), *own]

    def _make_platform(self, given: Mapping[str, Any]) -> dict[str, Any]:
        platform, pay = given.get("platform", self.study.platform), given.get("pay_per_hour", self.study.pay_per_hour)
        if platform != Study.Platform.OWN and pay == 0 and not self.study.is_launched:
            self.add_error("pay_per_hour", "People from such a platform are paid. Give an amount, such as 12.")
        parameters = {name: given.get(field, "") for name, field in PARAMETERS.items()}
        codes = {name: given.get(field, "") for name, field in CODES.items()}
        is_prolific = platform == Study.Platform.PROLIFIC
        given_codes = {name: code for name, code in codes.items() if code and is_prolific}
        chosen: dict[str, Any] = {
            "parameters": {name: word for name, word in parameters.items() if word and platform != "mturk"},
            "codes": given_codes,
            "confirm_by_api": bool(given.get("confirm_by_api")) and is_prolific,
        }
        # Prolific tells its code once the study stands there, which needs its link: only the launch asks for it.
        whole = chosen | ({"codes": {"complete": "NOT-YET"} | given_codes} if is_prolific else {})
        try:
            settings.parse_platform(Study(platform=platform, platform_settings=whole))
        except ProblemsError as error:
            self.add_error("platform", error.problems)
        return chosen


class NewStudyForm(StudyFields):
    """Begins a study; everything else gets a default from what the edition holds, to be changed after."""

    shown = (
        *("edition", "title", "name", "preset", "systems", "against", "size", "practice_trials", "gold_trials"),
        *("responsible", "keep_months"),
    )
    edition = EditionField()
    name = StudyNameField("Part of the address of its pages. Empty: made of the title.", required=False)
    preset = radios(
        "What evaluators are asked",
        [(one.name, f"{one.title}: {one.about}") for one in list_presets()],
        "Every word can be changed on the page “Questions”, as can their number and their scales.",
        "Choose what evaluators are asked.",
        initial=FIRST_PRESET,
    )
    systems = systems_field("Systems whose accepted submission holds anonymised trial utterances. None ticked: all.")
    size = radios(
        "Size to begin with",
        describe_sizes(),
        "Every number can be changed afterwards.",
        "Choose a size to begin with.",
        initial="2022",
    )

    def __init__(self, data: Any = None, *, user: Any, edition: Edition | None = None) -> None:
        self.user = user
        editions = selectors.editions_to_study(user)
        sole = editions.first() if editions.count() == 1 else None
        chosen = edition or sole
        super().__init__(data, initial={"edition": chosen} | (services.propose_study(chosen, user) if chosen else {}))
        self.fields["edition"].queryset = editions  # type: ignore[attr-defined]
        self.chosen = chosen
        propose_practice(self)
        self.fields["practice_trials"].help_text += " Of pairs of voices: as the size has them."
        self.fields["gold_trials"].required = False
        if chosen is None:
            del self.fields["systems"], self.fields["against"]
        else:
            heard = selectors.submissions_to_hear(chosen)
            self.fields["systems"].queryset = heard  # type: ignore[attr-defined]
            self.initial["systems"] = list(heard)
            self.fields["against"].choices = list_pairs([ORIGINAL, *selectors.name_codes(heard)])  # type: ignore[attr-defined]
            self.fields["against"].help_text = "Of AB, CCR and ABX."

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        if given.get("edition") != self.chosen:  # whose systems were not shown
            given["systems"] = ()
        if "name" in given and not given["name"] and given.get("title"):
            given["name"] = selectors.free_study_name(given["title"])
        if "preset" in given:
            self.clean_numbers(given, asked=load_preset(given["preset"]).questions)
        return given

    def save(self) -> Study | None:
        """Return the new study of a valid form; None with errors of the form where it does not hold together."""
        return or_errors(self, make_study, by=self.user, **self.cleaned_data)


class StudyForm(StudyFields):
    """Every field of a study; what can no longer change is shown and left alone."""

    def __init__(self, data: Any = None, *, study: Study) -> None:
        self.study = study
        super().__init__(data, initial=read_initial(study))
        if study.edition is not None:
            self.fields["systems"].queryset = selectors.submissions_to_hear(study.edition, study)  # type: ignore[attr-defined]
            sets = selectors.sets_to_hear(study.edition, study)
            sets = sets.filter(role=Role.TRIAL) if study.is_crossed else sets
            self.fields["data_sets"].queryset = sets  # type: ignore[attr-defined]
            if study.is_crossed:
                self.fields["data_sets"].help_text = "Each utterance of them that is drawn is heard in every condition."
            further = [(name_anchor(hz), f"Anchor at {hz / 1000:g} kHz") for hz in list_anchors(study.rate_hz)]
            if study.screen not in NEEDS_REFERENCE:  # where every trial plays the original anyway
                further.insert(0, (ORIGINAL, "Original speech"))
            self.fields["further"].choices = further  # type: ignore[attr-defined]
        absent = {*ABSENT[Study.Form(study.form)], *(OF_EDITIONS if study.has_own_recordings else SOUND)}
        absent |= {*(OF_OTHERS if study.is_crossed else OF_CROSSED)}
        absent |= {"plays_at_most"} if study.screen in SWITCHING else set()
        absent |= {"orders"} if len(study.asked) < FEWEST_TO_SWAP else set()
        if study.screen in PAIRED:
            names = [code or study.original_name for code in study.compared.values_list("code", flat=True)]
            self.fields["against"].choices = list_pairs(names)  # type: ignore[attr-defined]
        else:
            absent.add("against")
        if study.is_crossed and not study.gold_trials and not rules.has_known_answers(study.asked):
            absent |= {"gold_trials", "gold_gate"}
        for name in absent:
            del self.fields[name]
        for name in self.fields.keys() & {"systems", "data_sets"}:
            self.fields[name].needed_for = "the design"  # type: ignore[attr-defined]
        places = (study.is_launched and study.blocks.count()) or study.evaluators
        share = min(places, rules.places_for_one_network(Study(), places))
        limit = self.fields["places_per_network"]
        limit.help_text = limit.help_text.format(share=share, places=places)
        if study.is_launched:
            for name in self.fields.keys() & FORM_FIELDS_FIXED_AFTER_LAUNCH:
                self.fields[name].disabled = True

    @property
    def sections(self) -> list[dict[str, Any]]:
        """Return the parts of the form, each with the id of its heading; small fields in a row are one group."""
        found = []
        for name, (title, names) in SECTIONS.items():
            fields = [self[field] for field in names if field in self.fields]
            groups = [
                {"is_narrow": is_narrow, "fields": list(members)}
                for is_narrow, members in groupby(fields, key=lambda one: one.name in NARROW)
            ]
            is_folded = name in FOLDED and not any(field.errors for field in fields)
            found.append({"name": name, "title": title, "groups": groups, "is_folded": is_folded})
        return found

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        self.clean_numbers(given, asked=self.study.asked, has_own_recordings=self.study.has_own_recordings)
        for anchor in self.study.conditions.exclude(low_pass_hz=None) if given.get("rate_hz") else ():
            lowest_hz = rate_of_anchor(anchor.low_pass_hz or 0)
            if given["rate_hz"] < lowest_hz:
                self.add_error("rate_hz", f"{anchor} needs at least {lowest_hz:,} Hz. Choose a higher sampling rate.")
        if given.get("data_sets"):
            problems = selectors.set_problems(given["data_sets"], is_crossed=self.study.is_crossed)
            if problems:
                self.add_error("data_sets", problems)
        if "further" in given and self.study.screen in NEEDS_REFERENCE:
            given["further"] = [*given["further"], ORIGINAL]
        self.clean_settings(given)
        return given

    def save(self, *, by: Any) -> Study | None:
        """Return the changed study of a valid form; None with errors of the form where it does not hold together."""
        fields = {name: self.cleaned_data[name] for name in SAVED if name in self.cleaned_data}
        relations = {name: self.cleaned_data[name] for name in rules.RELATIONS if name in self.cleaned_data}
        if self.study.is_launched:
            fields = {name: value for name, value in fields.items() if name not in rules.LOCKED_AFTER_LAUNCH}
            relations = {}
        return or_errors(self, services.change_study, study=self.study, by=by, **fields, **relations)


def list_pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return which of these conditions can be compared in pairs: all of them, or each with one alone."""
    return [("", "Each condition with each other"), *((name, f"Each other condition with {name}") for name in names)]


class ExtendForm(forms.Form):
    """How many more evaluators a study shall have."""

    blocks = WholeField(
        "More evaluators", 1, 500, "Each gets a block of trials of their own, balanced with the others."
    )

    def save(self, study: Study, by: Any) -> dict[str, Any] | None:
        """Return the certificate of the longer study; None with errors of the form where it cannot be extended."""
        return or_errors(self, extend_design, study=study, blocks=self.cleaned_data["blocks"], by=by)


def or_errors(form: forms.BaseForm, service: Any, /, faulty: str | None = None, **arguments: Any) -> Any:
    """Return what a service returns; None with errors of the form where it refuses.

    Args:
        faulty: the field that a design or an analysis cannot be made of; None for the whole form.
    """
    try:
        return service(**arguments)
    except ValidationError as error:
        for field, sentences in error.update_error_dict({}).items():
            form.add_error(field if field in form.fields else None, sentences)
    except ProblemsError as error:
        form.add_error(faulty, error.problems)
    except NotPossible as reason:
        form.add_error(None, str(reason))
    return None
