"""``explain``: what a method does, in words; and what it did to a moment of a recording, in words and as a figure."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from anonymization.commands.arguments import add_options, method_of, options_of, require_usable, seed
from anonymization.commands.listing import method_row, say_method
from anonymization.methods.conforming import conform_file
from anonymization.methods.contract import Anonymizer, Options, PseudoSpeaker, takes_targets, validate_voice
from anonymization.methods.errors import MethodError
from anonymization.methods.explain import Explanation, explain
from anonymization.methods.pseudo_speakers import draw_pseudo_speaker, pseudo_speaker_key
from evaluation.commands.terminal import FINE, CommandError, say, say_json, say_wrapped
from evaluation.figures.explanation import draw_explanation, explanation_numbers
from evaluation.figures.style import ImageFormat
from evaluation.formats.audio import AudioError

DESCRIPTION = (
    "What a method does: in words, with its parameters and options. With a recording: what it does to one moment of "
    "it, in words and, with --figure, as a picture of spectra, resonances, poles or pitch marks."
)
_FORMATS: dict[str, ImageFormat] = {".svg": "svg", ".png": "png", ".pdf": "pdf"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("method", metavar="METHOD", help="a name of the list, or the description of a command (.toml)")
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE", help="a WAV or FLAC file")
    parser.add_argument("--at", type=float, metavar="S", help="seconds from its start (default: a clear vowel)")
    parser.add_argument("--figure", type=Path, metavar="OUT.svg", help="draw it, as svg, pdf or png by the ending")
    parser.add_argument("--seed", type=seed, default=1, help="what the voice is drawn from (default 1)")
    parser.add_argument(
        "--parameter", action="append", default=[], metavar="NAME=VALUE", help="of the voice, instead of the drawn one"
    )
    add_options(parser)


def run(options: argparse.Namespace) -> int:
    """Explain; the exit code."""
    method = method_of(options.method)
    if options.file is None:
        if options.figure or options.at is not None or options.parameter:
            raise CommandError("explain: expected a recording for --figure, --at or --parameter, found none.")
        _explain_method(method, as_json=options.json)
    else:
        _explain_file(method, options)
    return FINE


def _explain_method(method: Anonymizer, *, as_json: bool) -> None:
    words = in_words(method)
    if as_json:
        say_json(method_row(method) | {"words": words})
        return
    say_method(method)
    for paragraph in [words, *(parameter.effect for parameter in method.parameters)]:
        if paragraph:
            say()
            say_wrapped(paragraph)
    if method.reference:
        say()
        say_wrapped(f"Published: {method.reference}")


def in_words(method: Anonymizer) -> str:
    """What its source says that it does: the first paragraph of the module or class that it is made of."""
    process = getattr(method, "process", None)
    module = sys.modules.get(getattr(process, "__module__", ""))
    text = (getattr(module, "__doc__", None) if module else type(method).__doc__) or ""
    return " ".join(text.strip().split("\n\n")[0].split())


def _explain_file(method: Anonymizer, options: argparse.Namespace) -> None:
    require_usable(method)
    if takes_targets(method):
        raise CommandError(
            f"explain {method.name}: expected a method whose voices are numbers; this one gives those of target "
            "speakers. Leave the recording out to read what it does."
        )
    if options.figure and options.figure.suffix.lower() not in _FORMATS:
        raise CommandError(f"{options.figure}: expected a figure that ends in {', '.join(_FORMATS)}.")
    settings = options_of(method, options.option)
    voice = _voice(method, options)
    try:
        given = conform_file(options.file)
        output = method.anonymize(given.samples, given.rate_hz, voice, options=settings)
        found = explain(method, given.samples, output, given.rate_hz, voice, settings, options.at)
    except AudioError as error:
        raise CommandError(error.problem(str(options.file)).sentence()) from error
    except MethodError as error:
        raise MethodError(f"{options.file}: {error}") from error
    if options.figure:
        _draw(found, options.figure)
    _say(found, method, voice, settings, given.remarks, options)


def _voice(method: Anonymizer, options: argparse.Namespace) -> PseudoSpeaker:
    key = pseudo_speaker_key(seed=options.seed, role="trial", split="undivided", speaker=options.file.stem)
    drawn = draw_pseudo_speaker(key, method.parameters)
    values = dict(drawn.parameters)
    for text in options.parameter:
        name, _, value = text.partition("=")
        try:
            values[name] = float(value)
        except ValueError:
            raise CommandError(f"--parameter: expected name=number, found “{text}”.") from None
    voice = PseudoSpeaker(drawn.key, values)
    validate_voice(method, voice)
    return voice


def _draw(found: Explanation, path: Path) -> None:
    content = draw_explanation(found, "light", _FORMATS[path.suffix.lower()])
    try:
        path.write_bytes(content)
    except OSError as error:
        raise CommandError(f"{path}: expected a file that can be written, found “{error.strerror}”.") from error


def _say(
    found: Explanation,
    method: Anonymizer,
    voice: PseudoSpeaker,
    settings: Options,
    remarks: tuple[str, ...],
    options: argparse.Namespace,
) -> None:
    if options.json:
        numbers = explanation_numbers(found)
        say_json(
            {
                "method": method.name,
                "at_s": found.at_s,
                "parameters": dict(voice.parameters),
                "options": dict(settings),
                "changed_before": list(remarks),
                "sentences": list(found.sentences),
                "numbers": asdict(numbers),
            }
        )
        return
    units = {parameter.name: parameter.unit for parameter in method.parameters}
    values = ", ".join(f"{name} {value:.4g} {units[name]}".strip() for name, value in voice.parameters.items())
    say(f"{method.title} at {found.at_s:.2f} s of {options.file}{f', {values}' if values else ''}")
    for sentence in (*remarks, *found.sentences):
        say_wrapped(sentence, indent="  ")
    if options.figure:
        say(f"Drawn: {options.figure}")
