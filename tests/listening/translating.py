"""Finds the sentences that evaluators read, in templates and in Python, and reads catalogues, without gettext tools."""

import ast
import gettext
import re
from functools import cache
from pathlib import Path

from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parents[2]
LOCALE = ROOT / "listening" / "app" / "locale"
MARKS = {"gettext", "gettext_lazy", "_"}
MARKS_OF_NUMBER = {"ngettext", "ngettext_lazy"}
STRING = r"u?('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
IN_TEMPLATE = re.compile(rf"\b(?:gettext|_)\(\s*{STRING}\s*\)")
IN_TEMPLATE_OF_NUMBER = re.compile(rf"\bngettext\(\s*{STRING},\s*{STRING}")


def sentences_of_template(path):
    """Pairs of a sentence and its plural, which is empty for most."""
    made = templatize(path.read_text(encoding="utf-8"))
    found = [(ast.literal_eval(one), "") for one in IN_TEMPLATE.findall(made)]
    found += [(ast.literal_eval(one), ast.literal_eval(many)) for one, many in IN_TEMPLATE_OF_NUMBER.findall(made)]
    return found


def sentences_of_python(path):
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in MARKS and node.args and isinstance(node.args[0], ast.Constant):
                found.append((node.args[0].value, ""))
            elif name in MARKS_OF_NUMBER and isinstance(node.args[0], ast.Constant):
                found.append((node.args[0].value, node.args[1].value))
    return found


@cache
def sentences():
    """Where each sentence stands that an evaluator may read, by sentence and plural."""
    found = {}
    for path in sorted((ROOT / "templates" / "listening" / "sessions").rglob("*.html")):
        for pair in sentences_of_template(path):
            found.setdefault(pair, []).append(str(path.relative_to(ROOT)))
    for path in sorted((ROOT / "listening").rglob("*.py")):
        for pair in sentences_of_python(path):
            found.setdefault(pair, []).append(str(path.relative_to(ROOT)))
    return found


def catalogue_of(language, folder=LOCALE):
    """The compiled catalogue, as gettext reads it: by sentence, or by sentence and number of its plural form."""
    with (folder / language / "LC_MESSAGES" / "django.mo").open("rb") as file:
        return gettext.GNUTranslations(file)._catalog


def source_of(language, folder=LOCALE):
    """The catalogue's source in the same form; a fuzzy or obsolete sentence is none."""
    text = (folder / language / "LC_MESSAGES" / "django.po").read_text(encoding="utf-8")
    found = {}
    for entry in re.split(r"\n\s*\n", text):
        lines = [line for line in entry.splitlines() if not line.startswith("#")]
        if any(line.startswith("#,") and "fuzzy" in line for line in entry.splitlines()):
            continue
        parts, key = {}, ""
        for line in lines:
            head, _, rest = line.partition(" ")
            if line.startswith('"'):
                parts[key] += ast.literal_eval(line)
            else:
                key = head
                parts[key] = ast.literal_eval(rest)
        for name, translated in parts.items():
            if name == "msgstr" and translated:
                found[parts["msgid"]] = translated
            elif name.startswith("msgstr[") and translated:
                found[parts["msgid"], int(name[7:-1])] = translated
    return found
