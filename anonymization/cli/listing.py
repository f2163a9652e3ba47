"""``vp methods``: every method with its parameters and options, and what this machine lacks to run it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from anonymization.methods.contract import (
    Anonymizer,
    Option,
    keeps_duration,
    makes_vectors,
    plans_voices,
    takes_targets,
)
from anonymization.methods.measured import find_measured
from anonymization.methods.registry import broken, explain_missing, methods
from common.parameters import AsJson
from common.terminal import FINE, PROBLEMS, print_json, print_message, print_paragraph, print_text


def list_methods(as_json: AsJson = False) -> int:
    """List the anonymisers, built in and of plug-ins: parameters, options, and what is missing on this machine.

    The exit code is 1 where a plug-in is broken.

        vp methods
        vp methods --json
    """
    known, faulty = methods(), broken()
    if as_json:
        print_json(
            {"methods": [method_as_dict(method) for method in known], "broken": [asdict(each) for each in faulty]}
        )
    else:
        for number, method in enumerate(known):
            print_text("" if number else "Methods\n")
            say_method(method, indent="  ")
    for each in faulty:
        print_message(f"error: {each.reason}")
    return PROBLEMS if faulty else FINE


def say_method(method: Anonymizer, *, indent: str = "") -> None:
    """Name and title, parameters, options and what is missing."""
    deeper = f"{indent}  "
    print_text(f"{indent}{method.name}  {method.title}, version {method.version}")
    for parameter in method.parameters:
        span = parameter.describe_range("but not")
        print_paragraph(f"parameter {parameter.name}, {span}: {parameter.meaning}.", indent=deeper)
    if takes_targets(method):
        print_text(f"{deeper}voices are those of target speakers: --targets FOLDER, --target-selection NAME")
    elif plans_voices(method):
        print_text(f"{deeper}plans a voice for each speaker: --genders FILE, where the input has no file of them")
    elif (is_given := getattr(method, "is_given_voices", None)) is not None and not method.parameters:
        print_text(
            f"{deeper}the command {'is given a key for each voice' if is_given else 'chooses the voices itself'}"
        )
    elif not method.parameters:
        print_text(f"{deeper}no parameters: one voice for all speakers")
    for block in getattr(method, "pipeline", ()):
        print_paragraph(f"{block.slot}: {block.title} ({block.state})", indent=deeper)
    for option in method.options:
        print_paragraph(f"option {option.name}={describe_values(option)}: {option.meaning}.", indent=deeper)
    if method.needs_gpu:
        print_text(f"{deeper}needs a graphics card")
    if not keeps_duration(method):
        print_text(f"{deeper}changes the duration: it synthesises the speech")
    if not method.is_deterministic:
        print_text(f"{deeper}gives a different output each time")
    if missing := explain_missing(method):
        print_paragraph(f"cannot run here: {missing}", indent=deeper)
    elif isolation := getattr(method, "isolation", ""):
        print_paragraph(isolation, indent=deeper)


def describe_values(option: Option) -> str:
    """Return the default of an option, and what else it can be."""
    unit = f" {option.unit}" if option.unit else ""
    if option.choices:
        return f"{option.default} ({', '.join(option.choices)})"
    if isinstance(option.default, bool):
        return f"{'true' if option.default else 'false'} (true, false)"
    bounds = (("from", option.low), ("to", option.high))
    words = " ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)
    return f"{option.default:g}{unit}{f' ({words})' if words else ''}"


def method_as_dict(method: Anonymizer) -> dict[str, Any]:
    """Return a method for JSON."""
    facts = {name: getattr(method, name) for name in ("name", "title", "version", "reference")}
    facts |= {name: [asdict(each) for each in getattr(method, name)] for name in ("parameters", "options")}
    facts |= {name: getattr(method, name) for name in ("is_deterministic", "needs_gpu")}
    facts |= {"takes_targets": takes_targets(method), "plans_voices": plans_voices(method)}
    facts |= {"makes_vectors": makes_vectors(method), "keeps_duration": keeps_duration(method)}
    measured = find_measured(method)
    facts |= {"fidelity": getattr(method, "fidelity", ""), "measured": asdict(measured) if measured else None}
    facts["pipeline"] = [asdict(block) for block in getattr(method, "pipeline", ())]
    return facts | {"missing": explain_missing(method)}
