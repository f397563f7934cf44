"""The core under test as one namespace: the real one, or one with a planted mistake.

The model of `run.py` takes its core from here and never imports the real one by itself, so that a mistake that is
planted anywhere in it is really run. The steps are plain values without a decision; both share them.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

from hermes_trio.delivery import folding, reconcile, view

MODULES = {"view": view, "reconcile": reconcile, "folding": folding}
SOURCES = {name: Path(module.__file__).read_text() for name, module in MODULES.items()}
SERIAL = itertools.count()


def real() -> SimpleNamespace:
    """The core as it is."""
    return joined(MODULES.values())


def mistaken(old: str, new: str) -> SimpleNamespace:
    """The core with `new` wherever its source says `old`. Raises LookupError when it says so nowhere."""
    if not any(old in source for source in SOURCES.values()):
        raise LookupError(f"the core does not say {old!r}")
    prefix = f"mistaken_core_{next(SERIAL)}_"
    modules = []
    for name, source in SOURCES.items():
        module = ModuleType(prefix + name)
        sys.modules[module.__name__] = module
        text = source.replace(old, new)
        for other in MODULES:
            text = text.replace(f"from hermes_trio.delivery.{other} import", f"from {prefix}{other} import")
        exec(compile(text, module.__name__, "exec"), module.__dict__)
        modules.append(module)
    return joined(modules)


def joined(modules) -> SimpleNamespace:
    """The names of the modules in one."""
    names = SimpleNamespace()
    for module in modules:
        names.__dict__.update({name: value for name, value in vars(module).items() if not name.startswith("__")})
    return names
