"""What every column of an export means: the data dictionary that goes with each download.

A test compares it with the columns that `listening.monitor.export_tables` really writes.
"""

from __future__ import annotations

from collections.abc import Iterator

DICTIONARY_COLUMNS = ("table", "column", "meaning")
SESSION = "Number of the session; the same in all tables."
PERSON = "Keyed hash of the participant; the same for all sessions of one person in this study, and in no other study."
BLOCK = "Number of the block, which is the list of trials of one evaluator."
POSITION = "Place of the trial in its block, from 1, practice included."
ITEM = "Name of what the trial presents; an opaque code while results are locked."
SYSTEM = "Code of the system; `original` for original speech; empty while results are locked."
TARGET = "Whether samples A and B are of the same speaker; empty where no voices are compared."
PURPOSE = "`scored`, `practice`, `gold` (a control trial) or `bridge` (rated by everybody); results rest on `scored`."
SLOT = "Which sample: `a` (the trial utterance), `b` (enrolment), or `1`, `2`, … of a board."

ABOUT: dict[str, str] = {
    "study": "The study in one row: what is asked, how it is designed, versions and seed.",
    "systems": "The systems that are listened to, and by which submission of theirs.",
    "texts": "Every version of every text that evaluators read.",
    "blocks": "The trial lists of the design: one row for each evaluator that is planned.",
    "items": "What trials present.",
    "samples": "The recordings of each item.",
    "trials": "The design: which item stands where in which block.",
    "participants": "People, by keyed hash.",
    "sessions": "Visits of evaluators, from consent to code. Previews of organizers are left out.",
    "answers": "One row for each answered task of each trial.",
    "plays": "Playbacks as the browser told them; a claim, no proof.",
    "serves": "What the server really sent.",
    "events": "What happened in a session, told by the server or by the browser.",
    "screening": "Attempts at the screening tests.",
    "flags": "What the rules found that an organizer should look at; a flag excludes nobody by itself.",
    "rules": "Rules that leave sessions out of the analysis, standing and revoked.",
    "exclusions": "Which sessions a rule caught.",
    "payments": "Names of people on their platform with their codes, to pay them; in no other table or archive.",
}

MEANING: dict[str, dict[str, str]] = {
    "study": {
        "exported_at": "When this file was made (UTC).",
        "is_locked": "Whether results are locked against peeking: true while the study recruits (open or paused).",
        "name": "Name in addresses.",
        "title": "Title on pages.",
        "edition": "Edition of the challenge.",
        "form": "`rating`, `linkability` (a board) or `transcription`.",
        "state": "`draft`, `preparing`, `prepared`, `open`, `paused` or `closed`.",
        "is_simulated": "Whether all of its answers are simulated.",
        "tasks": "Tasks in the order of asking (JSON).",
        "pages": "`together`: all tasks of a trial on one page; `separate`: one after the other.",
        "scale_points": "Ratings go from 1 to this.",
        "plays_at_most": "How often a sample may be played; empty: as often as wanted.",
        "role_play": "`broadcaster`, `call-centre` or `own`.",
        "languages": "Languages on offer, the default first (JSON).",
        "questionnaire": "Questions asked before the test (JSON).",
        "screening": "Screening tests and what follows from them (JSON).",
        "platform": "`own`, `prolific` or `mturk`.",
        "evaluators": "Evaluators planned at the launch.",
        "trials_per_evaluator": "Scored trials of each block.",
        "originals_per_evaluator": "How many of those are of original speech.",
        "practice_trials": "Practice trials of each block.",
        "gold_trials": "Control trials of each block.",
        "bridge_trials": "Trials that everybody rates, in each block.",
        "board_samples": "Samples on each board.",
        "board_dimensions": "Dimensions of the board, 1 or 2.",
        "board_groups": "Whether evaluators draw groups.",
        "relaxations": "Rules of the design that were allowed to give way (JSON).",
        "lease_minutes": "How long a block stays with somebody who gives no sign of life, in min.",
        "pay_per_hour": "Pay per hour in the currency.",
        "currency": "ISO 4217 code.",
        "data_sets": "Data sets whose recordings are heard (JSON).",
        "seed": "Seed of the design, an extension adds its wave; empty while results are locked: the design follows.",
        "design_version": "Version of the method that made each part of the design (JSON).",
        "design_fingerprint": "SHA-256 over every trial of every block, as in the balance certificate.",
        "certificate": "The balance certificate of the design (JSON); empty while results are locked.",
        "stimuli": "What all stimulus files have in common (JSON).",
        "portal_version": "Release and commit of the portal that made this file.",
        "created_at": "When the study was created (UTC).",
        "launched_at": "When it was opened to evaluators (UTC).",
        "closed_at": "When it was closed (UTC).",
    },
    "systems": {
        "system": "Code of the system in the design.",
        "submission": "Submission whose recordings are heard.",
        "title": "Title of the system.",
    },
    "texts": {
        "kind": "`consent`, `role-play`, `instructions` or `thanks`.",
        "language": "Language code.",
        "version": "Version, from 1; sessions tell which one they showed.",
        "created_at": "When this version was written (UTC).",
        "text": "The text.",
    },
    "blocks": {
        "block": BLOCK,
        "wave": "0: of the launch; then one more for each extension.",
        "offers": "How often the block was given to a session.",
        "is_finished": "Whether a session finished it.",
        "session": "Session that holds or finished it; empty while it is free.",
    },
    "items": {
        "item": ITEM,
        "purpose": PURPOSE,
        "system": "Code of the system, `original`; empty while results are locked.",
        "is_target": TARGET,
        "expected": "Of a control trial the lowest and highest right rating by task (JSON).",
    },
    "samples": {
        "item": ITEM,
        "slot": SLOT,
        "system": "System of this sample, `original` for original speech; empty while results are locked.",
        "utterance": "Name of the utterance in the corpus.",
        "speaker": "Name of the speaker in the corpus.",
        "gender": "`f` or `m`.",
        "duration_s": "Length of the speech in s, without padding; empty while results are locked.",
        "facts": "Gain in dB, peak and level before and after levelling (JSON); empty while results are locked.",
    },
    "trials": {
        "block": BLOCK,
        "position": POSITION,
        "item": ITEM,
        "purpose": PURPOSE,
        "system": SYSTEM,
        "is_target": TARGET,
    },
    "participants": {
        "person": PERSON,
        "first_seen_at": "When the person first came (UTC).",
        "sessions": "Sessions of the person.",
    },
    "sessions": {
        "session": SESSION,
        "person": PERSON,
        "block": f"{BLOCK} Empty before consent.",
        "state": "`active`, `finished`, `screened-out`, `failed-attention`, `technical`, `expired` or `withdrawn`.",
        "step": "Where the session is; `end` once it has ended.",
        "is_excluded": "Whether a standing rule leaves it out of the analysis.",
        "is_simulated": "Whether a program answered.",
        "language": "Language of the pages.",
        "texts": "By kind the version and language of the text that was shown (JSON).",
        "questionnaire": "Answers to the questionnaire (JSON).",
        "device": "What the browser told of the device (JSON).",
        "skips": "Positions whose sound failed: once, the trial came again at the end; twice, it was given up (JSON).",
        "started_at": "First page (UTC).",
        "consented_at": "Consent (UTC).",
        "trials_started_at": "First trial (UTC).",
        "last_seen_at": "Last sign of life (UTC).",
        "ended_at": "End, for whatever reason (UTC).",
    },
    "answers": {
        "session": SESSION,
        "person": PERSON,
        "block": BLOCK,
        "position": POSITION,
        "item": ITEM,
        "purpose": PURPOSE,
        "system": SYSTEM,
        "is_target": TARGET,
        "task": "`verifiability`, `naturalness`, `intelligibility`, `linkability` or `transcription`.",
        "rating": "Rating from 1 to the points of the scale; empty for boards and transcriptions.",
        "text": "What was written down, as it was typed.",
        "data": "Where each sample of a board was placed, groups and number of speakers (JSON).",
        "received_at": "When the server had it (UTC).",
        "client_ms": "From the appearance of the trial to the answer by the browser's clock, in ms; a claim.",
        "is_late": "Whether it waited in the browser for a connection.",
        "session_state": "State of its session, as in `sessions`.",
        "is_excluded": "Whether a standing rule leaves its session out of the analysis.",
    },
    "plays": {
        "session": SESSION,
        "block": BLOCK,
        "position": POSITION,
        "slot": SLOT,
        "started_ms": "Start after the appearance of the trial, in ms.",
        "heard_ms": "Length of what was played, in ms.",
        "is_whole": "Whether it was played to its end.",
        "remarks": "Such as `muted`, `rate`, `seek`, `hidden` (JSON).",
    },
    "serves": {
        "session": SESSION,
        "block": BLOCK,
        "position": POSITION,
        "slot": SLOT,
        "first_at": "When the first byte was sent (UTC).",
        "complete_at": "When every byte had been sent once (UTC); empty if never.",
        "requests": "How often it was asked for.",
    },
    "events": {
        "session": SESSION,
        "at": "When the server wrote it down (UTC).",
        "kind": "What happened; `clip-remark`: a recording was said to sound wrong, `clip-broken`: its trial was "
        "skipped for its sound.",
        "is_told": "true: told by the browser, a claim; false: seen by the server.",
        "data": "More about it (JSON).",
    },
    "screening": {
        "session": SESSION,
        "kind": "`sound`, `huggins`, `woods` (headphone checks) or `language`.",
        "attempt": "From 1.",
        "expected": "The right answers (JSON).",
        "given": "The answers given (JSON).",
        "score": "Right answers.",
        "of": "Questions.",
        "is_passed": "Whether it was passed; empty while it is under way.",
        "at": "When it began (UTC).",
    },
    "flags": {
        "session": SESSION,
        "kind": "Rule: `straight-lining`, `low-variance`, `alternating`, `too-fast`, `gold-missed`, `headphones` or "
        "`playback`.",
        "holds": "Whether the rule still finds it; final once the session has ended.",
        "data": "The numbers it rests on (JSON).",
        "at": "When it was first found (UTC).",
    },
    "rules": {
        "rule": "Number of the rule.",
        "flag": "Flag whose sessions it leaves out; empty for a rule about one session.",
        "session": "The session it leaves out; empty for a rule by flag.",
        "reason": "Why.",
        "offers_block_again": "Whether blocks of sessions left out are offered to others.",
        "created_by": "Who made it.",
        "created_at": "When (UTC).",
        "revoked_by": "Who revoked it.",
        "revoked_at": "When (UTC); empty while it stands.",
    },
    "exclusions": {
        "rule": "Number of the rule.",
        "session": SESSION,
        "at": "When the rule caught it (UTC).",
        "is_standing": "Whether the rule still stands.",
    },
    "payments": {
        "session": SESSION,
        "person": PERSON,
        "platform_id": "Name of the person on the platform.",
        "platform_session": "Name of the submission or assignment on the platform.",
        "state": "State of the session, as in `sessions`.",
        "completion_code": "Code that was released to the person; empty if none was.",
        "started_at": "First page (UTC).",
        "ended_at": "End (UTC).",
    },
}

LOCK_NOTICE = (
    "The study recruits, so results are locked against peeking. No item, sample, trial or answer tells its system; "
    "items have opaque names; seed, certificate, lengths and levels of the stimuli are left out. "
    "So no result of a system can be added up from this file. Everything is told once the study is closed."
)


def dictionary_rows() -> Iterator[tuple[str, str, str]]:
    """Head and rows of ``dictionary.csv``: every column of every table that the archive holds, and of `payments`."""
    yield DICTIONARY_COLUMNS
    for table, columns in MEANING.items():
        for column, meaning in columns.items():
            yield table, column, meaning


def read_me(title: str, *, is_locked: bool, is_simulated: bool) -> str:
    """The text that goes with the archive."""
    tables = "\n".join(f"  tables/{name}.csv  {about}" for name, about in ABOUT.items() if name != "payments")
    parts = [
        title,
        "SIMULATED: a program answered, no person." if is_simulated else "",
        LOCK_NOTICE if is_locked else "",
        "dictionary.csv says what every column means. Times are UTC (ISO 8601), decimals have a point, an empty cell "
        "is a missing value, cells with lists or objects are JSON. A text that a spreadsheet would take for a formula "
        "has an apostrophe before it. Ratings are raw; nothing was left out: `is_excluded` says which sessions a "
        "standing rule leaves out of the analysis. People appear as keyed hashes only. A trial is named by its block "
        "and position.",
        f"Tables:\n{tables}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
