"""How the numbers of a study come about, in words with the names of their formulas, and where these are from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from listening.analysis.tables import Results

NORMALISATIONS = {
    "rank01/avg": "(rank − 1) / (n − 1)",
    "midrank": "(rank − ½) / n",
}
CORRECTIONS = {"holm": "Holm", "bh": "Benjamini and Hochberg"}
SETTINGS = {
    "normalisation": "Normalisation",
    "resamples": "Resamples",
    "permutations": "Permutations",
    "level": "Level",
    "correction": "Correction",
    "seed": "Seed",
    "least_clusters": "Fewest listeners",
    "partial_trials": "Unfinished: at least",
    "partial_of_each_kind": "of each kind",
}


@dataclass(frozen=True, slots=True)
class Formula:
    """A way of computing, with its name, and what it does."""

    name: str
    text: str


def formulas(results: Results, scores: str) -> Iterator[Formula]:
    """What a reader needs to know to compute the same, in the order of the page."""
    chosen = results.settings
    if results.study["form"] == "rating":
        yield from _of_ratings(results, scores)
    if results.study["form"] == "linkability":
        yield Formula(
            "Pairs on boards",
            "Each pair of samples of a listener’s board is scored by its closeness; normalised, the distances of a "
            "board are ranked within it. Targets are pairs of one speaker.",
        )
        yield Formula(
            "Groups",
            "Purity, inverse purity and their harmonic mean F, BCubed and the adjusted Rand index, each beside what "
            f"chance gives: speakers permuted within boards, {chosen.get('permutations', 0):,} times.",
        )
        yield Formula(
            "Averaged map",
            "The ranked distances of a board averaged over its listeners, laid out by classical scaling. Where each "
            "board has one listener, those of all boards of a system averaged for each two voices and laid out by "
            "weighted stress majorisation. Kruskal’s stress-1 tells how well a map fits.",
        )
    if results.study["form"] == "transcription":
        yield Formula(
            "Word error rate",
            "Substituted, deleted and inserted words over the words of the references, all transcripts together. Case, "
            "punctuation, numbers, contractions and spelling variants are made alike on both sides.",
        )
    yield Formula(
        "Intervals",
        f"Listeners are drawn with replacement, each with all their answers, {chosen.get('resamples', 0):,} times; the "
        f"interval holds {100 * chosen.get('level', 0.95):g} % of what results. All systems see the same draws, so the "
        f"pool of originals that they share is drawn jointly. Below {chosen.get('least_clusters', 10)} listeners there "
        "are numbers and no interval.",
    )


def _of_ratings(results: Results, scores: str) -> Iterator[Formula]:
    chosen = results.settings
    if scores == "normalised":
        name = str(chosen.get("normalisation", ""))
        yield Formula(
            f"Rank normalisation, {name}",
            "The ratings of a listener in a task are ranked, original and anonymised speech together, ties sharing "
            f"their mean rank; a score is {NORMALISATIONS.get(name, name)}. It takes out how generously each "
            "listener uses the scale.",
        )
    else:
        yield Formula(
            "Raw ratings", "As they were given. How generously each listener uses the scale is still in them."
        )
    yield Formula(
        "Equal error rate",
        "Where misses and false alarms are equally frequent, interpolated on the polygon of the DET curve. The rate on "
        "the convex hull, which cannot exceed 50 %, stands among all numbers for comparison only.",
    )
    yield Formula(
        "C_llr",
        "Ratings become log-likelihood ratios by a calibration on the originals, cross-validated by listener. The "
        "least C_llr is optimistic on so few ratings.",
    )
    yield Formula(
        "Two-way standard errors",
        "A sandwich clustered by listener and by source utterance, with t quantiles on the smaller number of clusters "
        "less 1.",
    )
    yield Formula(
        "Comparisons",
        "Within listeners: Wilcoxon’s signed-rank test and a permutation test that swaps labels inside each listener. "
        f"P-values are corrected over all pairs by {CORRECTIONS.get(str(chosen.get('correction')), '')}.",
    )
    yield Formula(
        "Mixed model",
        "Score by system and position, with random intercepts of listener, source utterance and speaker, by restricted "
        "maximum likelihood.",
    )


def settings_facts(results: Results) -> Iterator[tuple[str, str]]:
    """Settings, seed and versions."""
    for name, title in SETTINGS.items():
        if name in results.settings:
            value = results.settings[name]
            text = f"{100 * value:g} %" if name == "level" else CORRECTIONS.get(str(value), str(value))
            yield title, text
    design = results.study.get("design", {})
    for name, title in (("seed", "Design: seed"), ("fingerprint", "Design: fingerprint")):
        if design.get(name) not in (None, ""):
            yield title, str(design[name])
    for name, version in results.versions.items():
        yield ("This analysis" if name == "analysis" else name), f"version {version}"


def sources(results: Results) -> Iterator[str]:
    """Where the methods are from."""
    if results.study["form"] == "rating":
        yield "Tomashenko and others, VoicePrivacy Challenges of 2020 and 2022: tasks, rank normalisation, DET curves."
        yield "Camp and others, Interspeech 2023: clustered standard errors of listening tests."
        yield "Brümmer and du Preez, Computer Speech and Language 20, 2006: C_llr."
        yield "ITU-T P.913, Annex E: bias and inconsistency of listeners; ITU-T P.808: screening."
        yield "Krippendorff, “Content Analysis”: alpha. Shrout and Fleiss, Psychological Bulletin 86, 1979: ICC."
        yield "Piepho, Journal of Computational and Graphical Statistics 13, 2004: letters of groups."
    if results.study["form"] == "linkability":
        yield "Amigó and others, Information Retrieval 12, 2009: BCubed."
        yield "Hubert and Arabie, Journal of Classification 2, 1985: adjusted Rand index."
        yield "Torgerson, Psychometrika 17, 1952: classical scaling. Kruskal, Psychometrika 29, 1964: stress."
    yield "Efron and Tibshirani, “An Introduction to the Bootstrap”, 1993: intervals."
    if results.study["form"] == "rating":
        yield "Holm, Scandinavian Journal of Statistics 6, 1979; Benjamini and Hochberg, 1995: correction over pairs."
