"""The published result files, and the numbers that stand in the tables beside them."""

from __future__ import annotations

import csv

from evaluation.formats.results import Gender, NumberIdentity, ReportedNumber, Speech
from tests.official import PUBLISHED

R2022, R2024, R2026 = (PUBLISHED / f"vpc{year}" / "results" for year in (2022, 2024, 2026))

SHORT = {Speech.ORIGINAL: "orig", Speech.ANONYMISED: "anon"}
LETTER = {Speech.ORIGINAL: "o", Speech.ANONYMISED: "a"}
GENDERS = {Gender.FEMALE: "female", Gender.MALE: "male", Gender.ALL: "all"}
DETECTION = {
    ("eer", "kaldi"): "eer_percent",
    ("eer", "speechbrain"): "eer_percent",
    ("eer", "rocch"): "rocch_eer_percent",
    ("cllr", ""): "cllr_act",
    ("min_cllr", "pav"): "cllr_min",
    ("linkability", ""): "linkability",
    ("zebra_population", ""): "zebra_population_bit",
    ("zebra_individual", ""): "zebra_individual_log10",
    ("zebra_category", ""): "zebra_category",
}
OTHERS = {
    "pitch_correlation": "rho_f0_mean",
    "pitch_correlation_std": "rho_f0_std",
    "de_identification": "de_id",
    "gain_of_voice_distinctiveness": "g_vd_db",
}


def table(year: int, system: str) -> dict[tuple[str, str, str], str]:
    """(data set, gender, metric) → the value as printed."""
    with (PUBLISHED / f"vpc{year}" / "baseline-results.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["system"] == system]
    return {(row["dataset"], row["gender"], row["metric"]): row["value"] for row in rows}


def table_rows(reported: ReportedNumber) -> dict[tuple[str, str, str], str]:
    """The rows of the table of 2020 or 2022 that a reported number should be found in."""
    one, where = reported.identity, _where(reported.identity)
    if one.metric == "wer":
        end = f"{SHORT[one.training]}.{LETTER[one.speech]}.{one.estimator}"
        rows = {"percent": reported.written}
        if reported.counts:
            weight, penalty = reported.decoding.rpartition("/wer_")[2].split("_")
            counts = reported.counts
            rows |= {
                "errors": counts.errors,
                "ref_words": counts.words,
                "ins": counts.insertions,
                "del": counts.deletions,
                "sub": counts.substitutions,
                "lmwt": weight,
                "wip": penalty,
            }
        return {(*where, f"wer_{key}.{end}"): str(value) for key, value in rows.items()}
    if one.metric in OTHERS:
        return {(*where, OTHERS[one.metric]): reported.written}
    metric = DETECTION[one.metric, one.estimator]
    return {(*where, f"{metric}.{SHORT[one.training]}.{LETTER[one.enrolment]}-{LETTER[one.speech]}"): reported.written}


def _where(identity: NumberIdentity) -> tuple[str, str]:
    name = identity.data_set.removesuffix("_asr")
    if "_trials_" in name:
        corpus, _, rest = name.partition("_trials_")
        part = "_common" if rest.endswith("_common") else "_diff" if corpus.startswith("vctk") else ""
        name = f"{corpus}{part}"
    return name, GENDERS[identity.gender]
