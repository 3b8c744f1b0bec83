"""Signing in with the token, the reviewer's name, and the language of the page."""

import secrets

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from linker.review.language import LANGUAGES
from linker.server.guard.admission import address_of
from linker.server.page import sessions
from linker.server.page.rendering import message, page
from linker.server.page.reviews import Short

router = APIRouter()


@router.get("/login", name="login")
def ask(request: Request) -> Response:
    """Show the form for the token."""
    if request.state.session.signed_in:
        return RedirectResponse("/", 303)
    return page(request, "login.html")


@router.post("/login")
async def sign_in(request: Request, token: Short = "") -> Response:
    """Sign in if the token is correct, in a new session to prevent session fixation."""
    access, token = request.app.state.config.access, token.strip()
    principal = access.principal(token, address_of(request.scope))
    if principal is None or not principal.may("admin"):
        return page(request, "login.html", error=message("This is not the token."), status=403)
    response = RedirectResponse("/", 303)
    cookie = access.signed(secrets.token_urlsafe(24), token)
    response.headers.append("set-cookie", sessions.header(sessions.cookie_name(request), cookie, request))
    return response


@router.post("/logout", name="logout")
def sign_out(request: Request) -> Response:
    """Sign this browser out, and end its session for every copy of its cookie."""
    config, session = request.app.state.config, request.state.session
    if config.access.tokens is not None and session.signed_in:
        config.access.end(session.id)
    response = RedirectResponse("/login", 303)
    response.headers.append(
        "set-cookie", sessions.header(sessions.cookie_name(request), "", request, lifetime=0)
    )
    return response


@router.post("/reviewer", name="reviewer")
def rename(request: Request, name: Short = "", back: Short = "/") -> Response:
    """Set the reviewer name of this browser."""
    return _remember(request, sessions.REVIEWER, sessions.clean_name(name), back)


@router.post("/language", name="language")
def speak(request: Request, code: Short = "", back: Short = "/") -> Response:
    """Choose the language of the page."""
    return _remember(request, sessions.LANGUAGE, code if code in LANGUAGES else "", back)


def _remember(request: Request, name: str, value: str, back: str) -> Response:
    # redirect only to paths of this server: "//host" and "/\host" would lead to another
    is_path = back.startswith("/") and back[1:2] not in ("/", "\\") and back.isprintable()
    response = RedirectResponse(back if is_path else "/", 303)
    response.headers.append("set-cookie", sessions.header(name, value, request))
    return response
