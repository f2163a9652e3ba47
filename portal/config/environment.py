"""The portal's settings as they stand in the environment.

Every setting is one line of `variables.csv`: its name, its default, how its text is read and what it means.
`read_environment` reads all of them strictly: a value that does not parse or a name that does not exist is an error,
and all errors are told at once. `docs/settings.md` is this table in prose; a test holds the two together.
"""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parseaddr
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

PREFIX = "PORTAL_"


def _boolean(text: str) -> bool:
    words = {"true": True, "yes": True, "on": True, "1": True}
    words |= {"false": False, "no": False, "off": False, "0": False}
    if text.lower() not in words:
        raise ValueError("true or false")
    return words[text.lower()]


def _whole_number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError("a whole number of at least 1")
    if int(text) > 10**9:
        raise ValueError("a whole number of at most 1000000000")
    return int(text)


def _threads(text: str) -> int:
    if not text.isdecimal() or int(text) > 64:
        raise ValueError("a whole number from 0 to 64")
    return int(text)


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _folder(text: str) -> Path:
    if not text:
        raise ValueError("a folder")
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError:
        raise ValueError("a folder of a user of this machine") from None


def _folders(text: str) -> list[Path]:
    folders = [_folder(part) for part in _list(text)]
    for part, folder in zip(_list(text), folders, strict=True):
        if not part.startswith(("/", "~")) or not folder.is_dir():
            raise ValueError(f"absolute paths of existing folders with commas between them ({part} is not)")
    return folders


def _one_folder_or_none(text: str) -> Path | None:
    if not text:
        return None
    folder = _folder(text)
    if not text.startswith(("/", "~")) or not folder.is_dir():
        raise ValueError("the absolute path of an existing folder")
    return folder


def _database(text: str) -> str:
    if text and not text.startswith(("sqlite:///", "postgres://", "postgresql://")):
        raise ValueError("sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/NAME")
    return text


def _broker(text: str) -> str:
    if text and not text.startswith(("redis://", "rediss://", "amqp://", "amqps://")):
        raise ValueError("redis://HOST:PORT/NUMBER or amqp://USER:PASSWORD@HOST:PORT//")
    return text


@dataclass(frozen=True)
class FilesPlace:
    """Where the portal's files are: a `folder`, or a `bucket` with what every name in it begins with."""

    folder: Path | None = None
    bucket: str = ""
    prefix: str = ""
    endpoint: str = ""
    region: str = ""
    access_key: str = ""
    secret_key: str = ""


def _files(text: str) -> FilesPlace:
    if not text:
        return FilesPlace()
    url = urlsplit(text)
    if url.scheme == "file":
        if url.netloc or not url.path.startswith("/") or url.query or url.fragment or ".." in url.path.split("/"):
            raise ValueError("file:/// and the absolute path of a folder, such as file:///srv/portal/files")
        return FilesPlace(folder=Path(unquote(url.path)))
    if url.scheme != "s3":
        raise ValueError("file:///FOLDER or s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION")
    return _bucket(url)


def _bucket(url: SplitResult) -> FilesPlace:
    login, _, bucket = url.netloc.rpartition("@")
    access_key, _, secret_key = (unquote(part) for part in login.partition(":"))
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", bucket):
        raise ValueError("s3:// and the name of a bucket, 3 to 63 small letters, digits, dots and hyphens")
    if bool(access_key) != bool(secret_key):
        raise ValueError(
            "both keys before the bucket, as s3://ACCESS-KEY:SECRET-KEY@BUCKET with / and + of a key as %2F and %2B, "
            "or none of them"
        )
    prefix = unquote(url.path).strip("/")
    if prefix and not all(re.fullmatch(r"[\w.-]+", part) and part.strip(".") for part in prefix.split("/")):
        raise ValueError("a prefix of letters, digits, dots, hyphens and underscores between its slashes")
    if url.fragment:
        raise ValueError("nothing behind a #")
    pairs = parse_qsl(url.query, keep_blank_values=True)
    options = dict(pairs)
    if (unknown := sorted(options.keys() - {"endpoint", "region"})) or len(pairs) != len(options):
        raise ValueError(f"endpoint and region behind the ?, each once ({', '.join(unknown) or 'one is there twice'})")
    if not all(options.values()):
        raise ValueError("a value for endpoint and for region, where they are named")
    endpoint = _site(options.get("endpoint", "")) if "endpoint" in options else ""
    return FilesPlace(None, bucket, prefix, endpoint, options.get("region", ""), access_key, secret_key)


def _address(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError("HOST:PORT, such as 127.0.0.1:8000")
    return text


@dataclass(frozen=True)
class MailServer:
    """Where mail is handed in; `starttls` begins in clear and turns to TLS, `tls` speaks TLS from the first byte."""

    host: str
    port: int
    user: str
    password: str
    starttls: bool
    tls: bool


def _mail_server(text: str) -> MailServer | None:
    if not text:
        return None
    expected = "smtp://USER:PASSWORD@HOST:PORT, the same with /?tls for STARTTLS, or smtps://USER:PASSWORD@HOST:PORT"
    url = _split(text, expected)
    tls, starttls = url.scheme == "smtps", url.query == "tls"
    if url.scheme not in {"smtp", "smtps"} or url.query not in {"", "tls"} or (tls and starttls) or url.fragment:
        raise ValueError(expected)
    port = url.port or (465 if tls else 587 if starttls else 25)
    return MailServer(
        str(url.hostname), port, unquote(url.username or ""), unquote(url.password or ""), starttls=starttls, tls=tls
    )


def _mail_address(text: str) -> str:
    _, address = parseaddr(text)
    name, _, host = address.rpartition("@")
    if not name or not host or any(character.isspace() for character in address) or not text.isprintable():
        raise ValueError("an e-mail address, such as Portal <portal@example.org>")
    return text


def _site(text: str) -> str:
    if not text:
        return text
    expected = "http://HOST or https://HOST, with :PORT where needed and nothing behind it"
    url = _split(text, expected)
    if url.scheme not in {"http", "https"} or url.username is not None or url.query or url.fragment:
        raise ValueError(expected)
    return text.rstrip("/")


def _sentry_project(text: str) -> str:
    if not text:
        return text
    expected = "https://KEY@HOST/NUMBER, as Sentry shows it under Client Keys"
    try:
        url = urlsplit(text)
        sound = bool(url.hostname and url.username) and url.port != 0
    except ValueError:
        sound = False
    if not sound or url.scheme not in {"http", "https"} or url.query or url.fragment:
        raise ValueError(expected)
    if not url.path.rpartition("/")[2].isdecimal():
        raise ValueError(expected)
    return text


def _split(text: str, expected: str) -> SplitResult:
    """Return the parts of an address that names a host, a sound port and no path."""
    try:
        url = urlsplit(text)
        sound = bool(url.hostname) and url.path in {"", "/"} and url.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise ValueError(expected)
    return url


def _log_level(text: str) -> str:
    if text.upper() not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
        raise ValueError("DEBUG, INFO, WARNING or ERROR")
    return text.upper()


def _log_format(text: str) -> str:
    if text not in {"line", "json"}:
        raise ValueError("line or json")
    return text


def _megabytes(text: str) -> int:
    if not text.isdecimal() or int(text) > 10**7:
        raise ValueError("a whole number of MB, or 0")
    return int(text)


def _card_jobs(text: str) -> str:
    if text not in {"auto", "always", "never"}:
        raise ValueError("auto, always or never")
    return text


@dataclass(frozen=True)
class Variable:
    """One setting: `name` without the prefix, `default` as it would be written in the environment."""

    name: str
    default: str
    read: Callable[[str], Any]
    meaning: str


READERS: dict[str, Callable[[str], Any]] = {
    "folder": _folder,
    "text": str,
    "database": _database,
    "broker": _broker,
    "files": _files,
    "address": _address,
    "list": _list,
    "site": _site,
    "boolean": _boolean,
    "mail server": _mail_server,
    "mail address": _mail_address,
    "log level": _log_level,
    "log format": _log_format,
    "whole number": _whole_number,
    "folders": _folders,
    "one folder or none": _one_folder_or_none,
    "threads": _threads,
    "megabytes": _megabytes,
    "card jobs": _card_jobs,
    "sentry project": _sentry_project,
}
with Path(__file__).with_name("variables.csv").open(encoding="utf-8", newline="") as _table:
    VARIABLES = tuple(
        Variable(row["name"], row["default"], READERS[row["kind"]], row["meaning"]) for row in csv.DictReader(_table)
    )


def read_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Value of every variable, by its name without the prefix.

    Raises:
        ImproperlyConfigured: names every variable that is unknown or does not parse.
    """
    known = {PREFIX + variable.name for variable in VARIABLES}
    problems = [_unknown(name, known) for name in sorted(environ) if name.startswith(PREFIX) and name not in known]
    values: dict[str, Any] = {}
    for variable in VARIABLES:
        text = environ.get(PREFIX + variable.name, variable.default).strip()
        try:
            values[variable.name] = variable.read(text)
        except ValueError as error:
            found = f"{text.partition('://')[0]}://…" if "://" in text else text  # a URL may hold a password
            problems.append(f"{PREFIX}{variable.name}: expected {error}, found {found!r}.")
    if not problems and not values["JOB_SOFT_LIMIT_S"] < values["JOB_HARD_LIMIT_S"]:
        problems.append("PORTAL_JOB_SOFT_LIMIT_S: expected less than PORTAL_JOB_HARD_LIMIT_S.")
    if not problems and not values["JOB_HEARTBEAT_S"] * 2 < values["JOB_LOST_AFTER_S"]:
        problems.append("PORTAL_JOB_LOST_AFTER_S: expected more than twice PORTAL_JOB_HEARTBEAT_S.")
    if problems:
        raise ImproperlyConfigured("\n".join(["The environment cannot be used:", *problems]))
    return values


def _unknown(name: str, known: set[str]) -> str:
    # Without what all names begin with, which alone makes any two of them alike.
    near = difflib.get_close_matches(name.removeprefix(PREFIX), [one.removeprefix(PREFIX) for one in known], 1, 0.75)
    hint = f" Did you mean {PREFIX}{near[0]}?" if near else " docs/settings.md lists all."
    return f"{name}: there is no such setting.{hint}"


def settings_table() -> str:
    """Return the Markdown table of docs/settings.md."""
    rows = ["| variable | meaning | default |", "| --- | --- | --- |"]
    rows += [
        f"| `{PREFIX}{variable.name}` | {variable.meaning} | {f'`{variable.default}`' if variable.default else ''} |"
        for variable in VARIABLES
    ]
    return "\n".join(rows)
