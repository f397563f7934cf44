"""Where a secret comes from: the key itself, an environment variable (`KEY_env`) or a file (`KEY_file`).

The one rule: neither a secret nor what may be one by mistake (a token pasted into `token_env`) is ever quoted.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from hermes_trio.config.errors import Problem
from hermes_trio.config.kinds import Hidden, Kind, described
from hermes_trio.config.secret import Secret
from hermes_trio.config.settings import written_keys

LARGEST = 64 * 1024
"""Bytes of a secret's file; what is larger is another file by mistake."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SURELY_A_NAME = re.compile(r"[A-Z][A-Z_]*")
"""No key or token is written in capitals and underscores only, so such a name may be quoted."""


@frozen
class Sources:
    """Where to look."""

    base_dir: Path
    environ: Mapping[str, str]
    literal_is_fine: bool
    """Whether the key's own value came from the environment, not from a file."""


@frozen
class Found:
    """A secret, or why there is none."""

    value: Secret | None = None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


class _Unusable(Exception):
    """The source gives no secret; the text is the reason."""


def secret(key: str, kind: Kind, table: Mapping[str, Any], sources: Sources) -> Found:
    """The secret `key` of a table, from exactly one of its three keys. Problems have paths relative to the table."""
    assert isinstance(kind, Hidden)
    given = [each for each in written_keys(key) if each in table]
    if not given:
        missing = f"missing: write {key}_env, {key}_file or {key}"
        return Found(problems=(Problem(key, missing),)) if kind.required else Found()
    if len(given) > 1:
        return Found(problems=(Problem(key, f"{' and '.join(given)} are both given; keep one"),))
    return _from(given[0], key, kind, table[given[0]], sources)


def _from(given: str, key: str, kind: Hidden, raw: object, sources: Sources) -> Found:
    warning: str | None = None
    try:
        if given == key:
            text = raw
            if not sources.literal_is_fine:
                warning = f"the secret stands in the file itself; {key}_env or {key}_file keeps it out of copies"
        elif given.endswith("_env"):
            text = _from_environment(raw, sources.environ)
        else:
            text, warning = _from_file(raw, sources.base_dir)
        value = kind.parse("" if text is None else text)
    except (_Unusable, ValueError) as error:
        return Found(problems=(Problem(given, str(error)),))
    return Found(value, warnings=(Problem(given, warning),) if warning else ())


def _from_environment(raw: object, environ: Mapping[str, str]) -> str:
    if not isinstance(raw, str):
        raise _Unusable(f"must be the name of an environment variable, not {described(raw)}")
    if not _VARIABLE.fullmatch(raw):
        raise _Unusable("must be the name of an environment variable, not the secret itself")
    if not environ.get(raw):
        name = f"the environment variable {raw}" if _SURELY_A_NAME.fullmatch(raw) else "the environment variable"
        raise _Unusable(f"{name} is {'empty' if raw in environ else 'not set'}")
    return environ[raw]


def _from_file(raw: object, base_dir: Path) -> tuple[str, str | None]:
    """The text of the file without the line end at its end, and a warning."""
    if not isinstance(raw, str):
        raise _Unusable(f"must be the name of a file, not {described(raw)}")
    try:
        path = base_dir / Path(raw).expanduser()
        with path.open("rb") as file:
            mode = path.stat().st_mode
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise _Unusable(f"the file cannot be read: {error.strerror}; a relative path starts at {base_dir}") from None
    except (RuntimeError, ValueError):
        raise _Unusable("must be the name of a file") from None
    if len(content) > LARGEST:
        raise _Unusable(f"the file is larger than {LARGEST} bytes; that is no secret")
    readable = mode & stat.S_IROTH
    warning = "every user of this machine may read the file; chmod 600 it" if readable else None
    return content.decode("utf-8", "replace").rstrip("\r\n"), warning
