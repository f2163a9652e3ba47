"""``vp recognize``: what a recogniser understands of some speech, and how much of it is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from rich.text import Text
from typer import Argument, Option

from common import terminal
from common.arrays import Samples
from common.errors import CommandError
from common.file_names import plain_name
from common.folders import AUDIO_SUFFIXES
from common.hashes import compute_sha256
from common.parameters import AsJson
from common.problems import Problem, find_first_error
from evaluation.cli.arguments import Device, finish, require_entries
from evaluation.formats.audio_pairs import list_utterances
from evaluation.formats.hypothesis_file import TextStore
from evaluation.formats.kaldi import Parsed, read_spk2gender, read_text, read_utt2spk
from evaluation.metrics.bootstrap import Interval
from evaluation.metrics.word_errors import AlignedWord
from evaluation.metrics.word_normalization import CHALLENGE_2022, RULES, WRITTEN, WRITTEN_ENGLISH, find_rule, rule_for
from evaluation.objective_results.recognition import GROUPS, GroupErrors, RecognitionReport, recognition_report
from speech.audio.files import AudioError, read_pcm16, resample
from speech.recognizers.contract import RATE_HZ, RecognizerEngine, check_language
from speech.recognizers.registry import DEFAULT, engines, find_engine, load

LONGEST_S = 4 * 3600.0
AT_ONCE = {"cpu": 1, "cuda": 32}
_LISTINGS = {"utt2spk": read_utt2spk, "spk2gender": read_spk2gender}


@dataclass(frozen=True, slots=True)
class _Heard:
    """Hypotheses, the utterances asked about (None: all), and the sentences of what could not be read."""

    hypotheses: Mapping[str, str]
    asked: frozenset[str] | None = None
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Listed:
    """What is known of the utterances beforehand; originals: hypotheses of the original speech, where there are any."""

    references: Mapping[str, str]
    speakers: Mapping[str, str]
    genders: Mapping[str, str]
    originals: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked for; the fields are parameters of `recognize`."""

    audio: Sequence[Path]
    engine: str
    language: str
    device: Literal["cpu", "cuda"]
    hypotheses: Path | None
    originals: Path | None
    utt2spk: Path | None
    spk2gender: Path | None
    rule: str | None
    out: Path | None
    seed: int | None


def recognize(
    audio: Annotated[
        list[Path] | None, Argument(metavar="AUDIO", help="Files, folders of audio or Kaldi directories.")
    ] = None,
    engine: Annotated[str, Option(metavar="NAME", help=f"Recogniser: {', '.join(engines())}.")] = DEFAULT,
    language: Annotated[str, Option(metavar="CODE", help="That is spoken, such as de or ja.")] = "en",
    device: Device = "cpu",
    hypotheses: Annotated[
        Path | None, Option(metavar="FILE", help="Text of another recogniser (Kaldi text), instead of audio.")
    ] = None,
    text: Annotated[
        Path | None, Option(metavar="FILE", help="Transcripts (Kaldi text) to count errors against.")
    ] = None,
    originals: Annotated[
        Path | None, Option(metavar="FILE", help="Hypotheses of the original speech (Kaldi text).")
    ] = None,
    utt2spk: Annotated[
        Path | None, Option(metavar="FILE", help="Speakers, by default beside the text or the audio.")
    ] = None,
    spk2gender: Annotated[
        Path | None, Option(metavar="FILE", help="Genders, by default beside the text or the audio.")
    ] = None,
    rule: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help=f"How texts are made comparable: {', '.join(RULES)}. By default {WRITTEN_ENGLISH.name}, "
            f"{WRITTEN.name} in other languages; with --hypotheses, {CHALLENGE_2022.name}.",
        ),
    ] = None,
    out: Annotated[
        Path | None, Option(metavar="FILE", help="Write the hypotheses; those already in it are kept.")
    ] = None,
    worst: Annotated[int, Option(min=0, metavar="N", help="Worst utterances to show.")] = 10,
    seed: Annotated[
        int | None, Option(min=0, metavar="N", help="Seed of the resamples, by default names of the speakers.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Transcribe WAV or FLAC files, folders or Kaldi directories with a recogniser that runs here.

    Or read the text of another recogniser. With transcripts, word errors are counted, with 95 % intervals over
    speakers.

        vp recognize data/trials_f --engine moonshine-tiny --text data/trials_f/text --out hypotheses.txt
        vp recognize --hypotheses own.txt --text data/trials_f/text
    """
    if bool(audio) == bool(hypotheses):
        raise CommandError("recognize: expected audio or --hypotheses, one of the two. See --help.")
    if rule not in (None, *RULES):
        raise CommandError(f"--rule: expected one of {', '.join(RULES)}, found “{rule}”.")
    asked = _Asked(audio or (), engine, language, device, hypotheses, originals, utt2spk, spk2gender, rule, out, seed)
    problems: list[Problem] = []
    listed = _listed(asked, text, problems) if text else None
    if hypotheses:
        known = listed.references if listed else ()
        heard = _Heard(_read(read_text(hypotheses, str(hypotheses), known=known), problems))
    else:
        heard = _recognized(asked, problems)
    report = _report(asked, text, listed, heard) if listed else None
    if as_json:
        terminal.print_json(_content(asked, heard, report, problems))
    elif report:
        _print_report(report, worst)
    elif not out:
        for utterance, said in heard.hypotheses.items():
            terminal.print_text(f"{utterance} {said}".rstrip())
    if out and not as_json and not hypotheses:
        terminal.print_text(f"{len(heard.hypotheses)} hypotheses: {out}")
    return finish(heard.failures, problems)


def _listed(asked: _Asked, text: Path, problems: list[Problem]) -> _Listed:
    """Read before anything is recognised, so that a slip in a name costs no night."""
    places = (text.parent, *asked.audio)
    return _Listed(
        _read(read_text(text, str(text)), problems),
        _listing("utt2spk", asked.utt2spk, places, problems),
        _listing("spk2gender", asked.spk2gender, places, problems),
        _read(read_text(asked.originals, str(asked.originals)), problems) if asked.originals else None,
    )


def _read(parsed: Parsed[dict[str, str]], problems: list[Problem]) -> dict[str, str]:
    """Return the entries of a listing; what is wrong with it goes to `problems`.

    Raises:
        CommandError: nothing in it that can be read.
    """
    entries = require_entries(parsed)
    problems += parsed.problems
    return entries


def _recognized(asked: _Asked, problems: list[Problem]) -> _Heard:
    engine = find_engine(asked.engine)
    check_language(asked.language, engine)
    files, file_problems = _files(asked.audio)
    problems += file_problems
    failures: list[str] = []
    if not asked.out:
        found = dict(_transcribed(files, engine, asked, failures))
    else:
        with TextStore(asked.out, engine.key_for(asked.language)) as store:
            _require_same(asked.out, store, files)
            left = {name: path for name, path in files.items() if name not in store.done}
            for utterance, text in _transcribed(left, engine, asked, failures):
                store.add(utterance, text, compute_sha256(files[utterance]))
            store.finish()
        found = {name: text for name, text in store.done.items() if name in files}
    return _Heard(found, frozenset(files), tuple(failures))


def _require_same(out: Path, store: TextStore, files: Mapping[str, Path]) -> None:
    """Refuse a file of hypotheses of other recordings.

    Raises:
        CommandError: recordings are not those that the hypotheses of their names are of.
    """
    both = [name for name in files if name in store.done]
    other = [name for name in both if store.recordings.get(name) != compute_sha256(files[name])]
    if other:
        raise CommandError(
            f"{out}: expected hypotheses of these recordings, found those of others of the same names for {len(other)} "
            f"of {len(both)}, such as {other[0]}. Name another file, or remove this one."
        )


def _transcribed(
    files: Mapping[str, Path], engine: RecognizerEngine, asked: _Asked, failures: list[str]
) -> Iterator[tuple[str, str]]:
    """Yield what each file says, in one line; the sentences of files that cannot be read go to `failures`."""
    if not files:
        return
    recognizer = load(engine.name, asked.device)
    batch: dict[str, Samples] = {}
    for number, (utterance, path) in enumerate(
        terminal.track_progress(files.items(), len(files), f"utterances by {engine.title}"), start=1
    ):
        try:
            samples, rate = read_pcm16(path, longest_s=LONGEST_S)
        except AudioError as error:
            failures.append(error.problem(str(path)).sentence())
        else:
            batch[utterance] = samples if rate == RATE_HZ else resample(samples, rate, RATE_HZ)
        if len(batch) == AT_ONCE[asked.device] or number == len(files):
            texts = recognizer.transcribe(list(batch.values()), RATE_HZ, asked.language) if batch else []
            yield from ((name, " ".join(text.split())) for name, text in zip(batch, texts, strict=True))
            batch = {}


def _files(places: Sequence[Path]) -> tuple[dict[str, Path], tuple[Problem, ...]]:
    files: dict[str, Path] = {}
    problems: list[Problem] = []
    for place in places:
        if place.is_file() and place.name.lower().endswith(AUDIO_SUFFIXES):
            found: Mapping[str, Path] = {plain_name(place.stem): place}
        else:
            found, file_problems = list_utterances(place)
            problems += file_problems
        for utterance, path in found.items():
            if utterance.split() != [utterance]:
                expected, remedy = "a name without spaces, as lists of texts need it", "Rename it; it was left out."
                problems.append(Problem("spaces-in-name", str(path), expected, f"“{utterance}”", remedy))
                continue
            if files.setdefault(utterance, path) != path:
                expected, remedy = "one file of each utterance", "The first one was used."
                problems.append(Problem("repeated-utterance", str(path), expected, f"{utterance} again", remedy))
    if not files:
        raise CommandError(find_first_error(problems).sentence())
    return files, tuple(problems)


def _report(asked: _Asked, text: Path | None, listed: _Listed, heard: _Heard) -> RecognitionReport:
    # Which utterances are asked about, the audio says: a transcript often covers more.
    references = listed.references
    wanted = {name: said for name, said in references.items() if heard.asked is None or name in heard.asked}
    if not wanted:
        raise CommandError(f"{text}: expected transcripts of the utterances recognised, found none of them.")
    usual = CHALLENGE_2022 if asked.hypotheses else rule_for([asked.language])
    return recognition_report(
        wanted,
        heard.hypotheses,
        random=None if asked.seed is None else np.random.default_rng(asked.seed),
        speakers=listed.speakers,
        genders=listed.genders,
        originals=listed.originals,
        rule=find_rule(asked.rule) if asked.rule else usual,
    )


def _listing(name: str, named: Path | None, folders: Iterable[Path], problems: list[Problem]) -> dict[str, str]:
    """Return the listing that an option names, or that lies beside the transcripts or the audio; empty where there is
    none."""
    places = [named] if named else [folder / name for folder in folders]
    path = next((each for each in places if named or each.is_file()), None)
    return {} if path is None else _read(_LISTINGS[name](path, str(path)), problems)


def _print_report(report: RecognitionReport, worst: int) -> None:
    with_originals = any(group.original for group in report.groups)
    header = ["", "WER, %", "95 %", "clipped", "words", "ins", "del", "sub", "utterances", "speakers"]
    if with_originals:
        header += ["original, %", "difference", "95 %"]
    terminal.print_table(header, [_row(group, with_originals) for group in report.groups], numbers_from=1)
    terminal.print_text()
    terminal.print_paragraph(f"Texts compared {find_rule(report.rule).title} ({report.rule}).")
    for note in report.notes:
        terminal.print_paragraph(note)
    shown = report.worst(worst)
    if shown:
        terminal.print_text("\nWorst utterances (-missed-, +added+, said→recognised)")
    for one in shown:
        counts = one.errors.counts
        before = f", {one.original.counts.errors} in the original" if one.original else ""
        mark = ", repeats itself" if one.is_runaway else ""
        terminal.print_text(
            f"\n{one.utterance}: {counts.errors} errors in {counts.reference_words} words{before}{mark}"
        )
        terminal.print_paragraph(draw_alignment(one.errors.alignment), indent="  ")


def draw_alignment(alignment: Sequence[AlignedWord]) -> Text:
    """Aligned words in signs that any terminal shows, and colours that repeat what the signs say.

    ``-word-`` was said and not recognised, ``+word+`` recognised and not said, ``word→other`` mistaken.
    """
    return Text(" ").join(Text(*_mark_word(step)) for step in alignment)


def _mark_word(step: AlignedWord) -> tuple[str, str]:
    said, heard = terminal.clean_text(step.reference or ""), terminal.clean_text(step.hypothesis or "")
    if step.is_correct:
        return said, ""
    if step.hypothesis is None:
        return f"-{said}-", "red"
    return (f"+{heard}+", "green") if step.reference is None else (f"{said}→{heard}", "yellow")


def _row(group: GroupErrors, with_originals: bool) -> list[str]:
    counts = group.counts
    edits = [str(n) for n in (counts.insertions, counts.deletions, counts.substitutions)]
    row = [
        GROUPS[group.group],
        _percent(counts.error_rate),
        _limits(group.interval),
        _percent(group.clipped_error_rate),
        str(counts.reference_words),
        *edits,
        str(group.utterances),
        str(group.speakers or terminal.NONE),
    ]
    if with_originals:
        change = _percent(group.difference.estimate) if group.difference else terminal.NONE
        row += [_percent(group.original.error_rate if group.original else None), change, _limits(group.difference)]
    return row


def _percent(rate: float | None) -> str:
    return terminal.NONE if rate is None else f"{100 * rate:.2f}"


def _limits(interval: Interval | None) -> str:
    return terminal.NONE if interval is None else f"{100 * interval.lower:.2f} to {100 * interval.upper:.2f}"


def _without_replicates(fields: list[tuple[str, object]]) -> dict[str, object]:
    return {name: value for name, value in fields if not name.endswith("replicates")}


def _content(
    asked: _Asked, heard: _Heard, report: RecognitionReport | None, problems: Sequence[Problem]
) -> dict[str, object]:
    engine = None if asked.hypotheses else find_engine(asked.engine)
    return {
        "engine": engine and engine.key,
        "hypotheses": dict(heard.hypotheses),
        "report": report and asdict(report, dict_factory=_without_replicates),
        "failed": list(heard.failures),
        "problems": terminal.problem_rows(problems),
    }
