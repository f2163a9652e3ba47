"""The WORLD vocoder's package, found and loaded without what it needs only to say its own version.

pyworld 0.3.5 asks `pkg_resources` for its version when it is imported, which setuptools no longer has since version 81.
Its compiled part does all the work and needs numpy alone.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from threading import Lock
from types import ModuleType

from common.errors import InputError
from common.packages import describe_missing

_PACKAGE = "pyworld"
_COMPILED = "pyworld.pyworld"
_turn = Lock()


def missing_world(what: str = "Formant and F0 scaling") -> str:
    """Return why WORLD cannot be used here and what to do, a sentence; empty where it can. Never raises.

    Args:
        what: needs it, as a sentence begins.
    """
    if _COMPILED in sys.modules or _find_compiled() is not None:
        return ""
    return describe_missing(what, _PACKAGE)


def load_world() -> ModuleType:
    """Return the compiled part of pyworld: dio, stonemask, harvest, cheaptrick, d4c, synthesize.

    Raises InputError where it is absent or cannot be loaded.
    """
    with _turn:
        if _COMPILED in sys.modules:
            return sys.modules[_COMPILED]
        spec = _find_compiled()
        if spec is None or spec.loader is None:
            raise InputError(missing_world())
        try:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        except ImportError as error:
            raise InputError(f"The package pyworld cannot be loaded: {error}. Install it again.") from error
        # A later `import pyworld` then takes this one: a compiled module loads once in a process.
        return sys.modules.setdefault(_COMPILED, module)


def _find_compiled() -> ModuleSpec | None:
    """Return where the compiled part lies; the package itself is found, not run."""
    try:
        package = importlib.util.find_spec(_PACKAGE)
    except (ImportError, ValueError):
        return None
    for folder in (package.submodule_search_locations or []) if package else []:
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            path = Path(folder, "pyworld" + suffix)
            if path.is_file():
                return importlib.util.spec_from_file_location(_COMPILED, path)
    return None
