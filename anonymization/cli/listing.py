"""``list``: every method with its parameters and options, and what this machine lacks to run it."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from anonymization.methods.contract import Anonymizer, Option, Parameter, takes_targets
from anonymization.methods.registry import broken, methods, missing_of
from evaluation.commands.terminal import FINE, PROBLEMS, say, say_json, say_wrapped, warn

DESCRIPTION = "The methods: built in, and of plug-ins; each with its parameters, its options and what it lacks here."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no arguments of its own."""


def run(options: argparse.Namespace) -> int:
    """Print the list; 1 where a plug-in is broken."""
    known, faulty = methods(), broken()
    if options.json:
        say_json({"methods": [method_row(method) for method in known], "broken": [asdict(each) for each in faulty]})
    else:
        for number, method in enumerate(known):
            say("" if number else "Methods\n")
            say_method(method, indent="  ")
    for each in faulty:
        warn(f"error: {each.reason}")
    return PROBLEMS if faulty else FINE


def say_method(method: Anonymizer, *, indent: str = "") -> None:
    """Name and title, parameters, options and what is missing."""
    deeper = f"{indent}  "
    say(f"{indent}{method.name}  {method.title}, version {method.version}")
    for parameter in method.parameters:
        say_wrapped(f"parameter {parameter.name}, {range_words(parameter)}: {parameter.meaning}.", indent=deeper)
    if takes_targets(method):
        say(f"{deeper}voices are those of target speakers: --targets FOLDER, --target-selection NAME")
    elif not method.parameters:
        say(f"{deeper}no parameters: one voice for all speakers")
    for option in method.options:
        say_wrapped(f"option {option.name}={value_words(option)}: {option.meaning}.", indent=deeper)
    if method.needs_gpu:
        say(f"{deeper}needs a graphics card")
    if not method.is_deterministic:
        say(f"{deeper}gives another output each time")
    if missing := missing_of(method):
        say_wrapped(f"cannot run here: {missing}", indent=deeper)


def range_words(parameter: Parameter) -> str:
    """What a parameter can be."""
    unit = f" {parameter.unit}" if parameter.unit else ""
    gap = f", but not {parameter.gap[0]:g} to {parameter.gap[1]:g}" if parameter.gap else ""
    return f"{parameter.low:g} to {parameter.high:g}{unit}{gap}"


def value_words(option: Option) -> str:
    """The default of an option, and what else it can be."""
    unit = f" {option.unit}" if option.unit else ""
    if option.choices:
        return f"{option.default} ({', '.join(option.choices)})"
    if isinstance(option.default, bool):
        return f"{'true' if option.default else 'false'} (true, false)"
    bounds = (("from", option.low), ("to", option.high))
    words = " ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)
    return f"{option.default:g}{unit}{f' ({words})' if words else ''}"


def method_row(method: Anonymizer) -> dict[str, Any]:
    """A method for JSON."""
    return {
        "name": method.name,
        "title": method.title,
        "version": method.version,
        "reference": method.reference,
        "parameters": [asdict(parameter) for parameter in method.parameters],
        "options": [asdict(option) for option in method.options],
        "is_deterministic": method.is_deterministic,
        "needs_gpu": method.needs_gpu,
        "takes_targets": takes_targets(method),
        "missing": missing_of(method),
    }
