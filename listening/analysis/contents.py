"""What each table of an analysis holds: the contract between those who compute, draw, show and export.

`CONTENTS` has every table by name. Tables under `BY_SCORES` exist twice, for raw ratings and for normalised ones.
"""

from __future__ import annotations

from collections.abc import Mapping

from listening.analysis.tables import Column, Content


def _text(name: str, title: str, meaning: str) -> Column:
    return Column(name, title, meaning)


def _number(name: str, title: str, meaning: str, digits: int = 3) -> Column:
    return Column(name, title, meaning, digits)


def _share(name: str, title: str, meaning: str, digits: int = 1) -> Column:
    return Column(name, title, meaning, digits, is_share=True)


BY_LISTENER = "listener-cluster bootstrap"
BY_LISTENER_AND_UTTERANCE = "listener-cluster bootstrap, stretched where listeners share utterances"


def _interval(
    name: str, of: str, *, is_share: bool = False, digits: int = 3, how: str = BY_LISTENER
) -> tuple[Column, Column]:
    make = _share if is_share else _number
    digits = 1 if is_share else digits
    return (
        make(f"{name}_low", "from", f"lower limit of the interval of {of}, {how}", digits),
        make(f"{name}_high", "to", f"upper limit of the interval of {of}, {how}", digits),
    )


TASK = _text("task", "Task", "verifiability, naturalness or intelligibility")
SYSTEM = _text("system", "System", "name of the system, original for unprotected speech")
CLASS = _text("kind", "Pairs", "all, target (same speaker) or nontarget (different speakers)")
UTTERANCE = _text("utterance", "Utterance", "source utterance of sample A")
SPEAKER = _text("speaker", "Speaker", "of sample A")
FIRST = _text("first", "First", "a system")
SECOND = _text("second", "Second", "the system it is compared with")
GROUP = _text("group", "Group", "letters; systems that share one cannot be told apart")
N = Column("n", "n", "ratings")
LISTENERS = Column("listeners", "Listeners", "different listeners")
REMARK = _text("remark", "Remark", "what is missing or weak, and why")

SUMMARY = Content(
    "summary",
    "Scores of each system",
    (
        TASK, SYSTEM, CLASS, N, LISTENERS,
        Column("items", "Utterances", "different source utterances"),
        _number("mean", "Mean", "mean score"),
        *_interval("mean", "the mean", how=BY_LISTENER_AND_UTTERANCE),
        _number("median", "Median", "median score"),
        *_interval("median", "the median", how=BY_LISTENER_AND_UTTERANCE),
        _number("q1", "Lower quartile", "quantile 0.25"), _number("q3", "Upper quartile", "quantile 0.75"),
        _number("low_whisker", "Lower whisker", "lowest score within 1.5 interquartile ranges of the lower quartile"),
        _number("high_whisker", "Upper whisker", "highest score within 1.5 interquartile ranges of the upper quartile"),
        _number("sd", "SD", "standard deviation"),
        _number("se_naive", "SE naive", "standard error as if ratings were independent, SD / sqrt(n)", 4),
        _number("se_listener", "SE by listener", "standard error, listener-cluster bootstrap", 4),
        _number("se_item", "SE by utterance", "standard error, utterance-cluster bootstrap, ratings by their own", 4),
        _number("se_two_way", "SE two-way", "sandwich clustered by listener and by source utterance", 4),
        _number("two_way_low", "two-way from", "lower limit, t quantile on the smaller number of clusters less 1"),
        _number("two_way_high", "two-way to", "upper limit, t quantile on the smaller number of clusters less 1"),
        GROUP, REMARK,
    ),
    "Intervals resample listeners with all their ratings, and are wider where utterances were rated by several "
    "listeners: they hold for other listeners and other utterances of these speakers. Systems that share a letter "
    "cannot be told apart: they differ where both the comparison within listeners and a t test clustered by listener "
    "and utterance say so, each corrected over all pairs. With too few listeners for a t test, or one utterance only, "
    "the comparison within listeners decides alone, and where no two listeners rated both, the t test; one listener "
    "gives no letters. In verifiability, the mean of all pairs depends on how many of them were of one speaker: "
    "compare pairs of one speaker, and of two, each by themselves.",
)  # fmt: skip
DETECTION = Content(
    "detection",
    "Equal error rates of listeners",
    (
        TASK, SYSTEM,
        Column("n_target", "Targets", "ratings of targets"),
        Column("n_nontarget", "Nontargets", "ratings of nontargets"),
        LISTENERS,
        _share("eer", "EER", "interpolated on the polygon of the DET curve"),
        *_interval("eer", "the EER", is_share=True, how=BY_LISTENER_AND_UTTERANCE),
        _number("auc", "AUC", "area under the ROC curve, ties counted half"),
        *_interval("auc", "the AUC", how=BY_LISTENER_AND_UTTERANCE),
        _number(
            "cllr", "C_llr", "bits; ratings calibrated by logistic regression on those of other listeners: "
            "in verifiability on original pairs, else on originals against the system",
        ),
        *_interval("cllr", "C_llr", how=BY_LISTENER_AND_UTTERANCE),
        _number("min_cllr", "min C_llr", "bits; optimistic on so few ratings"),
        _share("rocch_eer", "EER on the convex hull", "never above 0.5, biased low near chance; for comparison only"),
        GROUP, REMARK,
    ),
    "Naturalness and intelligibility: targets are all original utterances, nontargets those of the system, so that a "
    "higher rate is a better system. Verifiability: same against different speakers, both by the system; near 50 % is "
    "private. Verifiability of the originals shows whether listeners can do the task: low is good. Intervals hold for "
    "other listeners and other utterances of these speakers.",
)  # fmt: skip
DET = Content(
    "det",
    "DET curves of listeners",
    (
        TASK, SYSTEM, _number("threshold", "Threshold", "scores at or above it are accepted; empty: none is", 4),
        _share("miss_rate", "Misses", "share of targets below the threshold", 2),
        _share("false_alarm_rate", "False alarms", "share of nontargets at or above it", 2),
    ),
)  # fmt: skip
HISTOGRAM = Content(
    "histogram",
    "How scores are distributed",
    (
        TASK, SYSTEM, CLASS, _number("lower", "From", "lower edge of the bin"),
        _number("upper", "to below", "upper edge of the bin; the last bin holds it too"),
        Column("count", "Ratings", "ratings in the bin"), _share("share", "Share", "of the ratings of this row's kind"),
    ),
)  # fmt: skip
DIFFERENCES = Content(
    "differences",
    "Systems compared within listeners",
    (
        TASK, FIRST, SECOND, LISTENERS,
        _number("difference", "Difference", "mean over listeners of (mean score of first − mean score of second)"),
        *_interval("difference", "the difference"),
        _number("wilcoxon_p", "p, Wilcoxon", "signed-rank test over listeners, two-sided", 4),
        _number("wilcoxon_adjusted", "adjusted", "corrected over all pairs of the task", 4),
        _number(
            "permutation_p", "p, permutation",
            "labels swapped within listeners, two-sided; counted out or by saddlepoint where too small to be drawn", 4,
        ),
        _number("permutation_adjusted", "adjusted", "corrected over all pairs of the task", 4),
        _number("rank_biserial", "Effect", "matched-pairs rank-biserial correlation, in [-1, 1]"), REMARK,
    ),
    "Systems are compared within the listeners who rated both; in verifiability class of pairs by class; "
    "p-values are corrected over all pairs. They and the intervals take the utterances that were rated as they are: "
    "what is told apart here may not be with other utterances. The letters of the summary ask for both.",
)  # fmt: skip
EER_DIFFERENCES = Content(
    "eer_differences",
    "Differences of equal error rates",
    (
        TASK, FIRST, SECOND,
        _share("difference", "Difference", "EER of first − EER of second"),
        *_interval(
            "difference", "the difference, the pool of originals drawn jointly", is_share=True,
            how=BY_LISTENER_AND_UTTERANCE,
        ),
        Column("is_told_apart", "Told apart", "1 if the interval corrected over all pairs (max-t) leaves out 0"),
        REMARK,
    ),
    "Each interval is of its pair alone; told apart are those whose interval corrected over all pairs leaves out 0.",
)  # fmt: skip
MANN_WHITNEY = Content(
    "mann_whitney",
    "Mann-Whitney test as in 2020 (ignores that ratings share listeners)",
    (
        TASK, FIRST, SECOND,
        Column("n_first", "n first", "ratings"), Column("n_second", "n second", "ratings"),
        _number("u", "U", "Mann-Whitney statistic of first", 1),
        _number("common_language", "U / mn", "chance that a rating of first is above one of second, ties half"),
        _number("cliffs_delta", "Cliff's δ", "2 U / mn − 1"),
        _number("p", "p", "two-sided, normal approximation with ties", 4),
        _number("adjusted", "adjusted", "corrected over all pairs of the task", 4),
    ),
    "Kept for comparison with the results of 2020. It takes ratings for independent, which they are not: trust the "
    "comparisons within listeners.",
)  # fmt: skip
MODEL_EFFECTS = Content(
    "model_effects",
    "Mixed model: what each system adds",
    (
        TASK, SYSTEM, _number("effect", "Effect", "score of the system − score of the reference, REML"),
        _number("se", "SE", "standard error", 4), _number("low", "from", "lower Wald limit"),
        _number("high", "to", "upper Wald limit"), REMARK,
    ),
    "score ~ system + position + (1 | listener) + (1 | source utterance) + (1 | speaker), in verifiability also the "
    "class of the pair; reference: the originals, else the first system.",
)  # fmt: skip
MODEL_VARIANCE = Content(
    "model_variance",
    "Mixed model: where the variance comes from",
    (
        TASK, _text("part", "Part", "listener, utterance, speaker or residual"),
        _number("variance", "Variance", "REML estimate", 4), _share("share", "Share", "of the sum"), REMARK,
    ),
)  # fmt: skip
RELIABILITY = Content(
    "reliability",
    "Do listeners agree?",
    (
        TASK, _text("measure", "Measure", "such as Krippendorff's alpha (interval)"),
        _text("over", "Over", "bridge set, all items rated more than once, or repeats by one listener"),
        _number("value", "Value", "of the measure"), *_interval("value", "the measure"),
        Column("n", "n", "ratings"), LISTENERS, Column("items", "Items", "items"), REMARK,
    ),
)  # fmt: skip
LISTENER = Content(
    "listeners",
    "Each listener",
    (
        _text("listener", "Listener", "keyed hash or token"), TASK, N,
        _number("mean", "Mean", "of the listener's scores"), _number("sd", "SD", "of the listener's scores"),
        _number("bias", "Bias", "mean deviation from the mean of the item or system over all listeners"),
        _number("inconsistency", "Inconsistency", "SD of that deviation (ITU-T P.913, Annex E)"),
        _number("correlation", "Agreement", "with the system means of the others, leave-one-out Pearson"),
        Column("repeats", "Repeats", "ratings of an item beyond the listener's first"),
        _number("repeat_difference", "Repeat difference", "mean absolute difference between repeats"),
        _share("repeat_within_one", "Within 1", "repeats that differ by at most one point"),
        _text("excluded", "Left out", "why, where a standing rule leaves the listener out"),
        _text("caught", "Rules", "screening rules that would leave the listener out"),
    ),
)  # fmt: skip
SCREENING = Content(
    "screening",
    "What each screening rule finds",
    (
        _text("rule", "Rule", "name of the rule"), _text("listener", "Listener", "keyed hash or token"),
        _text("session", "Session", "the sessions of the listener, by blanks"),
        TASK, _number("value", "Found", "what the rule looked at"), _number("limit", "Limit", "of the rule"),
        Column("is_caught", "Caught", "1 if the rule would leave the listener out"), REMARK,
    ),
)  # fmt: skip
EXCLUSION_EFFECT = Content(
    "exclusion_effect",
    "What leaving listeners out changes",
    (
        _text("rule", "Rule", "a screening rule, or standing: all exclusions that stand"), TASK, SYSTEM,
        Column("listeners_before", "Listeners before", "listeners"), Column("listeners_after", "after", "listeners"),
        Column("n_before", "n before", "ratings"), Column("n_after", "after", "ratings"),
        _number("mean_before", "Mean before", "mean score"), _number("mean_after", "after", "mean score"),
        _share("eer_before", "EER before", "interpolated"), _share("eer_after", "after", "interpolated"),
    ),
)  # fmt: skip
UTTERANCES = Content(
    "utterances",
    "Each utterance of each system",
    (
        SYSTEM, UTTERANCE, SPEAKER,
        Column("n", "n", "ratings of the task that was rated most"),
        _number("naturalness", "Naturalness", "mean score"),
        _number("intelligibility", "Intelligibility", "mean score"),
        _number("one_minus_wer", "1 − WER", "of the recogniser on this utterance; negative with many insertions"),
        _number("pitch_correlation", "ρF0", "pitch correlation with the original"),
    ),
)  # fmt: skip
CORRELATIONS = Content(
    "correlations",
    "Objective beside subjective, utterance by utterance",
    (
        _text("first", "First", "a measure: naturalness, intelligibility, 1 − WER or ρF0"),
        _text("second", "Second", "the measure it is compared with"),
        Column("utterances", "Utterances", "anonymised utterances with both values"), LISTENERS,
        _number("pearson", "Pearson", "correlation"), *_interval("pearson", "Pearson's correlation"),
        _number("spearman", "Spearman", "rank correlation"), *_interval("spearman", "Spearman's correlation"), REMARK,
    ),
    "Anonymised utterances of all systems together. Intervals resample listeners and take the utterances as given.",
)  # fmt: skip
DISAGREEMENTS = Content(
    "disagreements",
    "Where listeners and recogniser disagree most",
    (
        _text("kind", "Which", "heard-badly: every word recognised, worst rated; heard-well: most errors, best rated"),
        TASK, SYSTEM, UTTERANCE, SPEAKER, _number("score", "Score", "mean score"), N,
        _number("one_minus_wer", "1 − WER", "of the recogniser"),
    ),
    "At most ten of a kind for each task and system, the largest disagreements first. Heard well are those whose "
    "score, as a share of the scale, is furthest above 1 − WER.",
)  # fmt: skip
PAIR_DETECTION = Content(
    "pair_detection",
    "Linkability: same speaker by closeness on the board",
    (
        _text("pairs", "Pairs", "original-original, anonymised-anonymised or original-anonymised"),
        _text("system", "System", "of the anonymised samples, all for every one"),
        Column("n_target", "Targets", "pairs of one speaker"), Column("n_nontarget", "Nontargets", "pairs of two"),
        LISTENERS, Column("boards", "Boards", "boards that were filled"),
        _share("eer", "EER", "interpolated"), *_interval("eer", "the EER", is_share=True),
        _number("auc", "AUC", "ties counted half"), *_interval("auc", "the AUC"), REMARK,
    ),
    "Score: closeness. Normalised: the distances of a listener's board are ranked within it.",
)  # fmt: skip
PAIR_DET = Content(
    "pair_det",
    "Linkability: DET curves",
    (
        _text("pairs", "Pairs", "as in pair_detection"), _text("system", "System", "as in pair_detection"),
        _number("threshold", "Threshold", "closeness", 4), _share("miss_rate", "Misses", "share of targets below", 2),
        _share("false_alarm_rate", "False alarms", "share of nontargets at or above", 2),
    ),
    "Corners of the curve, at most some three hundred spread evenly over it.",
)  # fmt: skip
GROUPING = Content(
    "grouping",
    "Linkability: do groups hold one speaker each?",
    (
        _text("source", "Groups", "drawn by the listener, or cut at the number of speakers the listener declared"),
        _text("samples", "Samples", "all, original or anonymised"),
        _text("measure", "Measure", "purity, inverse purity, F, BCubed precision, recall and F, adjusted Rand index"),
        Column("boards", "Boards", "boards"), LISTENERS,
        _number("value", "Value", "mean over boards"), *_interval("value", "the mean"),
        _number("chance", "Chance", "mean with speakers permuted within boards"),
        _number("chance_high", "95 % of chance", "quantile 0.95 of the mean with speakers permuted"),
        _number("p", "p", "share of permutations that reach the value, (k + 1) / (n + 1)", 4), REMARK,
    ),
)  # fmt: skip
MAP = Content(
    "map",
    "Linkability: averaged map",
    (
        _text("board", "Board", "what was presented together, or all boards of a system where each has one listener"),
        _text("slot", "Sample", "on the board; empty on a map of all boards, whose points are voices"), SYSTEM,
        _text("utterance", "Utterance", "empty on a map of all boards"), SPEAKER,
        _number("x", "x", "first axis"), _number("y", "y", "second axis; empty in one dimension"),
        Column("listeners", "Listeners", "how many placed it"),
    ),
    "Distances ranked within each listener's board, averaged for each pair of samples over the listeners of a board "
    "and laid out by classical scaling; or, where each board has one listener, for each pair of voices (a speaker, "
    "original or anonymised by the system) over all boards of the system and laid out by stress majorisation. The "
    "centre is (0, 0); only distances matter. The direction is that of the placing which the map of a board resembles "
    "most; the map of a system has its longest axis first.",
)  # fmt: skip
MAP_FIT = Content(
    "map_fit",
    "Linkability: how well the map fits",
    (
        _text("board", "Board", "as in map"), Column("dimensions", "Dimensions", "of the map"),
        Column("samples", "Points", "samples of the board, or voices"), LISTENERS,
        _number("stress", "Stress", "Kruskal's stress-1 of the averaged distances that are known"), REMARK,
    ),
)  # fmt: skip
TRANSCRIPTION = Content(
    "transcription",
    "Words that listeners understood",
    (
        _text("system", "System", "name of the system, original for unprotected speech, all for every anonymised one"),
        Column("n", "Transcripts", "transcripts"), LISTENERS, Column("utterances", "Utterances", "different"),
        Column("words", "Words", "words of the references"),
        _share("wer", "WER", "word error rate, weighted by words"), *_interval("wer", "the WER", is_share=True),
        _share("substitutions", "Substituted", "of the words"), _share("deletions", "Deleted", "of the words"),
        _share("insertions", "Inserted", "per word"),
        _share("keyword_accuracy", "Keywords", "content words understood"),
        _share("nothing", "Nothing", "transcripts that say that nothing was understood"),
        _share("recogniser_wer", "Recogniser", "WER of the recogniser on the same utterances, weighted alike"), REMARK,
    ),
    "Case, punctuation, numbers, contractions and spelling variants are normalised on both sides.",
)  # fmt: skip
TRANSCRIPTS = Content(
    "transcripts",
    "Each transcript",
    (
        SYSTEM, UTTERANCE, _text("listener", "Listener", "keyed hash or token"),
        Column("words", "Words", "of the reference"), Column("errors", "Errors", "word errors"),
        _text("reference", "Said", "normalised"), _text("heard", "Heard", "normalised"),
    ),
)  # fmt: skip

BY_SCORES: tuple[Content, ...] = (
    SUMMARY, DETECTION, DET, HISTOGRAM, DIFFERENCES, EER_DIFFERENCES, MANN_WHITNEY, MODEL_EFFECTS, MODEL_VARIANCE,
    RELIABILITY, LISTENER, EXCLUSION_EFFECT, UTTERANCES, CORRELATIONS, DISAGREEMENTS, PAIR_DETECTION, PAIR_DET,
)  # fmt: skip
COMMON: tuple[Content, ...] = (SCREENING, GROUPING, MAP, MAP_FIT, TRANSCRIPTION, TRANSCRIPTS)
CONTENTS: Mapping[str, Content] = {one.name: one for one in (*BY_SCORES, *COMMON)}
# Tables that name single listeners; nobody but the organizers of a study sees them.
ABOUT_LISTENERS = frozenset({"listeners", "screening", "transcripts"})
# Tables that name single utterances: for organizers, and for the team of the system.
ABOUT_UTTERANCES = frozenset({"utterances", "disagreements", "map"})
