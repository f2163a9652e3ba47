"""``explain``: what a method does, in words; and what it did to a moment of a recording, in words and as a figure."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, replace
from pathlib import Path

from anonymization.cli.arguments import add_options, find_named_method, read_options, require_usable, seed
from anonymization.cli.listing import method_as_dict, say_method
from anonymization.explanation.explain import explain
from anonymization.methods import contract
from anonymization.methods.audio_conversion import convert_file
from anonymization.methods.voices.pseudo_speakers import draw_voice, pseudo_speaker_key
from common.arrays import Samples
from common.errors import CommandError
from common.terminal import FINE, print_json, print_paragraph, print_text
from evaluation.figures.explanation import draw_explanation, explanation_numbers
from evaluation.figures.style import ImageFormat
from speech.audio.files import AudioError

DESCRIPTION = (
    "What a method does: in words, with its parameters and options. With a recording: what it does at one instant of "
    "it, in words and, with --figure, as a picture of spectra, resonances, poles or pitch marks."
)
_FORMATS: dict[str, ImageFormat] = {".svg": "svg", ".png": "png", ".pdf": "pdf"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument(
        "method", metavar="METHOD", help="a method that “list” shows, or a command's description (.toml)"
    )
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE", help="a recording (WAV or FLAC)")
    parser.add_argument("--at", type=float, metavar="S", help="instant in s from its start (default: a clear vowel)")
    parser.add_argument(
        "--figure", type=Path, metavar="OUT.svg", help="figure to write (svg, pdf or png by its ending)"
    )
    parser.add_argument("--seed", type=seed, default=1, help="seed of the voice (default 1)")
    parser.add_argument(
        "--parameter", action="append", default=[], metavar="NAME=VALUE", help="a parameter, instead of the drawn one"
    )
    add_options(parser)


def run(options: argparse.Namespace) -> int:
    """Explain; the exit code."""
    method = find_named_method(options.method)
    if options.file is None:
        if options.figure or options.at is not None or options.parameter:
            raise CommandError("explain: expected a recording for --figure, --at or --parameter, found none.")
        _explain_method(method, as_json=options.json)
    else:
        _explain_file(method, options)
    return FINE


def _explain_method(method: contract.Anonymizer, *, as_json: bool) -> None:
    words = describe_method(method)
    if as_json:
        print_json(method_as_dict(method) | {"words": words})
        return
    say_method(method)
    for paragraph in [words, *(parameter.effect for parameter in method.parameters)]:
        if paragraph:
            print_text()
            print_paragraph(paragraph)
    if method.reference:
        print_text()
        print_paragraph(f"Published: {method.reference}")


def describe_method(method: contract.Anonymizer) -> str:
    """What its source says that it does: the first paragraph of its module or class."""
    process = getattr(method, "process", None)
    module = sys.modules.get(getattr(process, "__module__", ""))
    text = (getattr(module, "__doc__", None) if module else type(method).__doc__) or ""
    return " ".join(text.strip().split("\n\n")[0].split())


def _explain_file(method: contract.Anonymizer, options: argparse.Namespace) -> None:
    require_usable(method)
    if contract.takes_targets(method):
        raise CommandError(
            f"explain {method.name}: expected a method whose voices are numbers; this one gives those of target "
            "speakers. Leave the recording out to read what it does."
        )
    if options.figure and options.figure.suffix.lower() not in _FORMATS:
        raise CommandError(f"{options.figure}: expected a figure that ends in {', '.join(_FORMATS)}.")
    settings = read_options(method, options.option)
    voice = _voice(method, options)
    try:
        given = convert_file(options.file)
        output = method.anonymize(given.samples, given.rate_hz, voice, options=settings)
        found = explain(method, given.samples, output, given.rate_hz, voice, settings, options.at)
    except AudioError as error:
        raise CommandError(error.problem(str(options.file)).sentence()) from error
    except contract.MethodError as error:
        raise contract.MethodError(f"{options.file}: {error}") from error
    if path := options.figure:
        content = draw_explanation(found, "light", _FORMATS[path.suffix.lower()])
        try:
            path.write_bytes(content)
        except OSError as error:
            raise CommandError(f"{path}: expected a file that can be written, found “{error.strerror}”.") from error
    if options.json:
        print_json(
            {
                "method": method.name,
                "at_s": found.at_s,
                "parameters": dict(voice.parameters),
                "options": settings,
                "changed_before": list(given.notes),
                "sentences": list(found.sentences),
                "numbers": asdict(explanation_numbers(found)),
            }
        )
        return
    units = {parameter.name: parameter.unit for parameter in method.parameters}
    values = ", ".join(f"{name} {value:.4g} {units[name]}".strip() for name, value in voice.parameters.items())
    print_text(f"{method.title} at {found.at_s:.2f} s of {options.file}{f', {values}' if values else ''}")
    for sentence in (*given.notes, *found.sentences):
        print_paragraph(sentence, indent="  ")
    if options.figure:
        print_text(f"Drawn: {options.figure}")


def _read(path: Path) -> tuple[Samples, int]:
    given = convert_file(path)
    return given.samples, given.rate_hz


def _voice(method: contract.Anonymizer, options: argparse.Namespace) -> contract.PseudoSpeaker:
    key = pseudo_speaker_key(seed=options.seed, role="trial", split="undivided", speaker=options.file.stem)
    drawn = draw_voice(method, contract.VoiceRequest(key, "", (lambda: _read(options.file),)))
    values = dict(drawn.parameters)
    for text in options.parameter:
        name, _, value = text.partition("=")
        try:
            values[name] = float(value)
        except ValueError:
            raise CommandError(f"--parameter: expected name=number, found “{text}”.") from None
    voice = replace(drawn, parameters=values)
    contract.validate_voice(method, voice)
    return voice
