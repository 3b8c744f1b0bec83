"""Who is asking: signed cookies, the token against forged requests (CSRF), the reviewer's name and language.

Nothing is kept on the server, so that a restart signs nobody out and loses no form.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from urllib.parse import quote, unquote

from starlette.requests import Request

from linker.web.config import ServeConfig
from linker.web.language import Language, choose

LIFETIME = 30 * 24 * 3600  # seconds
REVIEWER, LANGUAGE = "linker-reviewer", "linker-language"
LONGEST_NAME = 60  # characters of a reviewer's name
CSRF_FIELD, CSRF_HEADER = "csrf", "x-csrf-token"


@dataclass(frozen=True, slots=True)
class Session:
    """One browser: its secret id, whether it has signed in, the reviewer's name and the language of the page.

    `fixed`: the name comes from the proxy and cannot be chosen. `cookie` is the cookie to set, if it is new.
    """

    id: str
    signed_in: bool
    reviewer: str
    language: Language
    csrf: str
    fixed: bool = False
    cookie: str = ""


def read(request: Request, config: ServeConfig) -> Session:
    """Return the session of a request, a new one where its cookie is missing, forged or too old."""
    value = request.cookies.get(cookie_name(request), "")
    level, id_, cookie = _checked(value, config), value.partition(".")[0], ""
    if level is None:
        level = "out" if config.token else "in"
        id_ = secrets.token_urlsafe(24)
        cookie = signed(id_, level, config)
    proxied = request.headers.get(config.proxy_header, "") if config.proxy_header else ""
    return Session(
        id_,
        signed_in=bool(proxied) if config.proxy_header else level == "in",
        reviewer=clean_name(proxied or unquote(request.cookies.get(REVIEWER, ""))),
        language=choose(request.cookies.get(LANGUAGE, ""), request.headers.get("accept-language", "")),
        csrf=_mac(config, f"csrf {id_}"),
        fixed=bool(config.proxy_header),
        cookie=cookie,
    )


def cookie_name(request: Request) -> str:
    """Return the name of the session's cookie; a browser shares cookies between ports, so the port is part of it."""
    server = request.scope.get("server")
    return f"linker-{server[1] if server else 0}"


def signed(id_: str, level: str, config: ServeConfig) -> str:
    """Return a session's cookie: its id, when it was given out, "in" where it has signed in, and the signature."""
    body = f"{id_}.{int(time.time())}.{level}"
    return f"{body}.{_mac(config, body)}"


def header(name: str, value: str, request: Request, *, lifetime: int = LIFETIME) -> str:
    """Return a Set-Cookie header's value: HttpOnly, SameSite, and Secure where the page came by HTTPS."""
    secure = "; Secure" if request.url.scheme == "https" else ""
    return f"{name}={quote(value)}; Path=/; Max-Age={lifetime}; HttpOnly; SameSite=Lax{secure}"


def clean_name(name: str) -> str:
    """Return a reviewer's name on one line, printable and not too long; it may be empty."""
    return "".join(c for c in " ".join(name.split()) if c.isprintable())[:LONGEST_NAME].strip()


def is_same(given: str, expected: str) -> bool:
    """Compare two secrets in a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode())


def _checked(value: str, config: ServeConfig) -> str | None:
    """Return the level of a session's cookie, or None where it is not ours or too old."""
    body, _, signature = value.rpartition(".")
    parts = body.split(".")
    if len(parts) != 3 or not is_same(signature, _mac(config, body)) or not parts[1].isdecimal():
        return None
    return parts[2] if 0 <= time.time() - int(parts[1]) < LIFETIME else None


def _mac(config: ServeConfig, text: str) -> str:
    key = hashlib.sha256(b"linker session " + config.token.encode()).digest()
    return hmac.new(key, text.encode(errors="replace"), hashlib.sha256).hexdigest()
