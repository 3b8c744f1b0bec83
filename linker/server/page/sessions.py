"""Sessions: signed cookies, the token against forged requests (CSRF), the reviewer's name and language.

The server stores only ended sessions (see access.py), so a restart signs nobody out and loses no form.
"""

import secrets
from dataclasses import dataclass
from urllib.parse import quote, unquote

from starlette.requests import Request

from linker.review.language import ReaderLanguage, choose
from linker.server.config import ServeConfig
from linker.server.guard.access import LIFETIME

REVIEWER, LANGUAGE = "linker-reviewer", "linker-language"
LONGEST_NAME = 60  # maximum length in characters of a reviewer's name
CSRF_FIELD, CSRF_HEADER = "csrf", "x-csrf-token"


@dataclass(frozen=True, slots=True)
class Session:
    """One browser: its secret id, whether it has signed in, the reviewer's name and the language of the page.

    `fixed`: the name comes from the proxy and cannot be chosen. `cookie` is the cookie to set, if it is new.
    """

    id: str
    signed_in: bool
    reviewer: str
    language: ReaderLanguage
    csrf: str
    fixed: bool = False
    cookie: str = ""


def read(request: Request, config: ServeConfig) -> Session:
    """Return the session of a request, a new one if its cookie is missing, forged, expired or signed out."""
    access, cookie = config.access, ""
    known = access.checked(request.cookies.get(cookie_name(request), ""))
    if known is None:
        known = secrets.token_urlsafe(24), access.tokens is None
        cookie = access.signed(known[0])
    id_, signed_in = known
    proxied = clean_name(request.headers.get(config.proxy_header, "")) if config.proxy_header else ""
    return Session(
        id_,
        signed_in=bool(proxied) if config.proxy_header else signed_in,
        reviewer=proxied or clean_name(unquote(request.cookies.get(REVIEWER, ""))),
        language=choose(request.cookies.get(LANGUAGE, ""), request.headers.get("accept-language", "")),
        csrf=access.mac(f"csrf {id_}"),
        fixed=bool(config.proxy_header),
        cookie=cookie,
    )


def cookie_name(request: Request) -> str:
    """Return the name of the session's cookie; a browser shares cookies between ports, so the port is part of it."""
    server = request.scope.get("server")
    return f"linker-{server[1] if server else 0}"


def header(name: str, value: str, request: Request, *, lifetime: int = LIFETIME) -> str:
    """Return a Set-Cookie header's value: HttpOnly, SameSite, and Secure if the page came over HTTPS."""
    secure = "; Secure" if request.url.scheme == "https" else ""
    return f"{name}={quote(value)}; Path=/; Max-Age={lifetime}; HttpOnly; SameSite=Lax{secure}"


def clean_name(name: str) -> str:
    """Return a reviewer's name on one line, printable and not too long; it may be empty."""
    return "".join(c for c in " ".join(name.split()) if c.isprintable())[:LONGEST_NAME].strip()
