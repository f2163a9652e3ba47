"""Whether a file of a stranger is a PDF that can be read and runs nothing when it is opened.

It is read by pypdf in a process of its own, within limits of memory and time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.child_process import Child, ChildEnded, ChildLimits, How, run_in_child
from common.memory import format_size

if TYPE_CHECKING:
    from pypdf import PdfReader

LARGEST_PDF_BYTES = 100 << 20
_LIMITS = ChildLimits(cpu_s=30, memory_bytes=2 << 30, time_s=120)
_HEAD_BYTES = 1024
_BEFORE_HEAD = b"\xef\xbb\xbf\r\n\t \0"
_ACTIONS = {"/JavaScript": "a script", "/Launch": "a program to start"}  # of those that a PDF may begin by itself


def find_pdf_fault(document: Path) -> str:
    """Return what a file is that is no harmless PDF, such as ``other bytes``; "" where it is one."""
    size = document.stat().st_size
    with document.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head:
        return "an empty file"
    if not head.lstrip(_BEFORE_HEAD).startswith(b"%PDF-"):
        return "other bytes"
    if size > LARGEST_PDF_BYTES:
        return f"{format_size(size)}, where {format_size(LARGEST_PDF_BYTES)} are read at most"
    import pypdf  # noqa: F401 - heavy, and loaded before the process divides

    def work(_: Child) -> str:
        logging.disable(logging.CRITICAL)  # in this process: what pypdf says of broken files
        return _read_fault(document)

    try:
        return str(run_in_child(work, _LIMITS))
    except (ChildEnded, RuntimeError, OSError) as error:
        is_over = isinstance(error, ChildEnded) and error.how is not How.DIED
        return f"a PDF that cannot be read{' within its limits of time and memory' if is_over else ''}"


def _read_fault(document: Path) -> str:
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        with PdfReader(document) as reader:
            if reader.is_encrypted and not reader.decrypt(""):
                return "a PDF that asks for a password"
            if not len(reader.pages) or not reader.pages[0].mediabox.width:
                return "a PDF without pages"
            return next((f"a PDF with {_ACTIONS[action]}" for action in _find_actions(reader)), "")
    except (PyPdfError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return "a PDF whose structure is broken"
    except NotImplementedError:
        return "a PDF with an encryption or a compression of a kind that is not read"


def _find_actions(reader: PdfReader) -> Iterator[str]:
    """Yield those of `_ACTIONS` that any object of the file holds, used or not."""
    from pypdf.generic import ArrayObject, DictionaryObject, IndirectObject

    numbers = {(number, generation) for generation, rows in reader.xref.items() for number in rows}
    numbers |= {(number, 0) for number in reader.xref_objStm}
    for number, generation in sorted(numbers):
        waiting: list[Any] = [reader.get_object(IndirectObject(number, generation, reader))]
        while waiting:
            thing = waiting.pop()
            if isinstance(thing, DictionaryObject):
                if "/JS" in thing:
                    yield "/JavaScript"
                action = thing["/S"] if "/S" in thing else ""  # `get` would return a reference  # noqa: SIM401
                if isinstance(action, str) and action in _ACTIONS:
                    yield action
                waiting += thing.values()  # those of other objects are references, which are not followed
            elif isinstance(thing, ArrayObject):
                waiting += list.__iter__(thing)
