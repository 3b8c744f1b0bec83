"""Who is let in, what is refused, and that untrusted text never becomes part of a page."""

import re
import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from linker.base.errors import InputError
from linker.server.config import Limits, ServeConfig
from linker.server.guard.access import LIFETIME, Access
from linker.server.guard.admission import RefusedError
from linker.server.page.app import create_app
from linker.server.page.guard import HEADERS
from tests.server.page.support import BASE, HOSTILE, client, form, forms, opened

TOKEN, OTHER = "correct-horse-battery-staple", "another-horse-and-battery"
JUDGE = "/p/floods/judge"
PAGES = ("/", JUDGE, *(f"/p/floods/{name}" for name in ("seeds", "progress", "export", "judged")), "/nowhere")


def test_this_machine_is_answered_and_a_rebound_name_is_not(folder: Path) -> None:
    for host in ("127.0.0.1:8000", "localhost", "[::1]:8000", "LOCALHOST:1"):
        assert client(folder).get(JUDGE, headers={"host": host}).status_code == 200, host
    for host in ("evil.example", "127.0.0.1.evil.example", "169.254.1.1", "", "localhost.evil"):
        answer = client(folder).get(JUDGE, headers={"host": host})
        assert answer.status_code == 421, host
        assert "Whoever runs linker can allow it." in answer.text
        assert "--" not in answer.text


@pytest.mark.parametrize("path", PAGES)
def test_a_page_needs_nothing_that_the_policy_forbids(browser: TestClient, path: str) -> None:
    answer = browser.get(path)
    assert HEADERS.items() <= dict(answer.headers).items()
    assert answer.headers["cache-control"] == "no-store"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert "server" not in answer.headers
    assert not re.search(r"<script(?![^>]* src=\"/static/)[^>]*>", answer.text)
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", answer.text)
    assert not re.search(r"(src|href|action)=\"(https?:)?//", answer.text)
    posted = [each for each in forms(answer.text) if each["method"] == "post"]
    assert all(each["values"].get("csrf") for each in posted), posted


def posts(folder: Path) -> list[str]:
    paths = create_app(ServeConfig.of(folder)).openapi()["paths"]
    return sorted(path.replace("{project}", "floods") for path, methods in paths.items() if "post" in methods)


def test_nothing_changes_without_the_token(folder: Path) -> None:
    with client(folder) as browser:
        paths = posts(folder)
        assert JUDGE in paths
        for path in paths:
            if "{" in path:
                continue
            for data in ({}, {"csrf": "0" * 64}, {"csrf": ""}):
                answer = browser.post(path, data={"id": "f1", "seed": "s1", "verdict": "relevant", **data})
                assert answer.status_code == 403, path
        other = client(folder)  # another browser's token
        token = form(other.get(JUDGE).text, "/judge")["csrf"]
        assert browser.post("/p/floods/undo", data={"csrf": token}).status_code == 403
        assert opened(browser.app, "floods").ledger.history() == ()


def test_only_a_form_of_this_site_with_the_token_changes_anything(browser: TestClient) -> None:
    token = form(browser.get(JUDGE).text, "/judge")["csrf"]
    for origin in ("https://evil.example", "http://127.0.0.1:9", "null"):
        answer = browser.post("/p/floods/undo", data={"csrf": token}, headers={"origin": origin})
        assert answer.status_code == 403
    assert browser.post("/p/floods/undo", data={"csrf": token}, headers={"origin": BASE}).status_code == 200
    assert browser.post("/p/floods/undo", headers={"x-csrf-token": token}).status_code == 200


def test_texts_of_others_are_only_text(folder: Path) -> None:
    with client(folder) as browser:
        page = browser.get(JUDGE, params={"id": "hostile", "seed": "s1"}).text
        values = form(page, "/judge") | {"verdict": "relevant", "note": HOSTILE, "tags": HOSTILE}
        browser.post(JUDGE, data=values)
        browser.post("/p/floods/criteria", data={"csrf": values["csrf"], "criteria": HOSTILE})
        browser.post(
            "/p/floods/seeds/paste", data={"csrf": values["csrf"], "title": HOSTILE, "text": HOSTILE}
        )
        browser.post("/reviewer", data={"csrf": values["csrf"], "name": HOSTILE})
        shown = [
            browser.get(path, params=params).text
            for path, params in [
                *((path, {}) for path in PAGES),
                (JUDGE, {"q": HOSTILE}), (JUDGE, {"id": "hostile", "seed": HOSTILE}), (JUDGE, {"id": HOSTILE}),
                ("/p/floods/seeds", {"q": HOSTILE}), (f"/p/{HOSTILE}/judge", {}),
            ]
        ]  # fmt: skip
    for text in shown:
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "49" not in re.findall(r"onerror=alert\(2\)&gt;(.{10})", text)
    assert sum("&lt;script&gt;alert(1)" in text for text in shown) >= 6


def test_a_body_that_is_too_large_is_refused(folder: Path) -> None:
    browser = client(folder, ServeConfig.of(folder, limits=Limits(form=2000, upload=5000)))
    token = form(browser.get(JUDGE).text, "/judge")["csrf"]
    values = {"csrf": token, "criteria": "x" * 3000}
    assert browser.post("/p/floods/criteria", data=values).status_code == 413

    def stream() -> object:  # no length is declared in advance
        yield f"csrf={token}&criteria=".encode()
        yield from (b"x" * 500 for _ in range(10))

    headers = {"content-type": "application/x-www-form-urlencoded"}
    answer = browser.post("/p/floods/criteria", content=stream(), headers=headers)  # type: ignore[arg-type]  # an iterator
    assert answer.status_code == 413
    assert not browser.get(JUDGE).text.count("xxx")


def test_a_network_needs_a_token(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--token-file"):
        ServeConfig.of(tmp_path, "0.0.0.0")
    with pytest.raises(InputError, match="not both"):
        ServeConfig.of(tmp_path, "0.0.0.0", token_file=tmp_path / "t", proxy_header="X-User")
    with pytest.raises(InputError, match="header"):
        ServeConfig.of(tmp_path, proxy_header="X User:")


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    """A token file with two tokens that open the page, and one that does not."""
    path = tmp_path / "tokens"
    path.write_text(f"# ours\n{'r' * 20} read\n{TOKEN}\n{OTHER} admin ana\n")
    path.chmod(0o600)
    return path


def signed_in(folder: Path, tokens: Path, token: str = TOKEN) -> TestClient:
    """Return a browser that has signed in."""
    browser = client(folder, ServeConfig.of(folder, token_file=tokens))
    browser.post("/login", data=form(browser.get("/login").text, "/login") | {"token": token})
    assert browser.get(JUDGE).url.path == JUDGE
    return browser


def is_let_in(folder: Path, tokens: Path, cookie: str) -> bool:
    """Return whether a newly started server knows a session."""
    browser = client(folder, ServeConfig.of(folder, token_file=tokens))
    return browser.get(JUDGE, headers={"cookie": f"linker-8000={cookie}"}).url.path == JUDGE


def test_a_restart_signs_nobody_out_and_a_change_of_tokens_does(folder: Path, tokens: Path) -> None:
    first, second = (signed_in(folder, tokens, token).cookies["linker-8000"] for token in (TOKEN, OTHER))
    assert is_let_in(folder, tokens, first) and is_let_in(folder, tokens, second)
    tokens.write_text(f"{OTHER}\n")
    assert not is_let_in(folder, tokens, first)
    assert is_let_in(folder, tokens, second)
    key = tokens.with_name("tokens.sessions")
    assert key.stat().st_mode & 0o777 == 0o600
    key.unlink()
    assert not is_let_in(folder, tokens, second), (
        "without the secret, a cookie could be made from a guessed token"
    )
    key.chmod(0o640)
    with pytest.raises(InputError, match="chmod 600"):
        ServeConfig.of(folder, token_file=tokens)
    key.write_text("no key\n")
    with pytest.raises(InputError, match="delete it"):
        ServeConfig.of(folder, token_file=tokens)


def test_who_signs_out_is_out_wherever_the_cookie_is(folder: Path, tokens: Path) -> None:
    browser = signed_in(folder, tokens)
    cookie = browser.cookies["linker-8000"]
    browser.post("/logout", data={"csrf": form(browser.get(JUDGE).text, "/logout")["csrf"]})
    browser.cookies.clear()
    assert browser.get(JUDGE, headers={"cookie": f"linker-8000={cookie}"}).url.path == "/login"
    assert not is_let_in(folder, tokens, cookie)


def test_a_session_ends(tokens: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access, now = Access.of(tokens, page=True), time.time()
    cookie = access.signed("id", TOKEN)
    assert access.checked(cookie) == ("id", True)
    for seconds, expected in ((LIFETIME - 5, ("id", True)), (LIFETIME + 5, None), (-60, None)):
        monkeypatch.setattr("linker.server.guard.access.time.time", lambda at=now + seconds: at)
        assert access.checked(cookie) == expected
    id_, began, mark, signature = cookie.split(".")
    monkeypatch.setattr("linker.server.guard.access.time.time", lambda: now + 10)
    for forged in (f"{id_}.{int(began) + 5}", f"another.{began}"):  # to outlive the session, or its sign-out
        assert access.checked(f"{forged}.{mark}.{signature}") is None


def test_where_nothing_can_be_written_sessions_end_with_the_server(
    tokens: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, text: str) -> None:
        raise PermissionError(13, f"{path}: {text}")

    monkeypatch.setattr("linker.server.guard.access.write_secret", refuse)
    access = Access.of(tokens, page=True)
    assert not access.survives
    access.end("id")
    assert access.checked(access.signed("id", TOKEN)) is None
    assert Access.of(tokens, page=True).checked(access.signed("other", TOKEN)) is None


def test_the_token_cannot_be_found_by_trying(folder: Path, tokens: Path) -> None:
    inside, browser = signed_in(folder, tokens), client(folder, ServeConfig.of(folder, token_file=tokens))
    values = form(browser.get("/login").text, "/login")
    statuses = [browser.post("/login", data=values | {"token": f"{n:020}"}).status_code for n in range(25)]
    assert statuses[:20] == [403] * 20
    assert set(statuses[21:]) == {429}
    right = browser.post("/login", data=values | {"token": TOKEN})
    assert right.status_code == 429
    assert int(right.headers["retry-after"]) > 0
    assert 'role="alert"' in right.text
    assert inside.get(JUDGE).url.path == JUDGE


def test_the_address_that_signed_in_last_is_remembered(tokens: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linker.server.guard.access.REMEMBERED", 1)
    access = Access.of(tokens, page=True)
    for address in ("first", "last"):
        assert access.principal(TOKEN, address)
    for address, is_let_in in (("last", True), ("first", False)):
        with pytest.raises(RefusedError):
            for n in range(100):
                access.principal(f"wrong {n}", address)
        if is_let_in:
            assert access.principal(TOKEN, address)
        else:
            with pytest.raises(RefusedError):
                access.principal(TOKEN, address)


def test_websockets_are_closed_and_an_origin_that_is_no_address_is_foreign(folder: Path) -> None:
    browser = client(folder)
    with pytest.raises(WebSocketDisconnect), browser.websocket_connect("/"):
        pass
    done = browser.post("/projects", headers={"origin": "http://[::1"})
    assert done.status_code == 403
    assert "site" in done.text


def test_only_tokens_of_apis_file_that_may_do_everything_open_the_page(folder: Path, tokens: Path) -> None:
    browser = client(folder, ServeConfig.of(folder, token_file=tokens))
    values = form(browser.get("/login").text, "/login")
    assert browser.post("/login", data=values | {"token": "r" * 20}).status_code == 403
    tokens.chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        ServeConfig.of(folder, token_file=tokens)


def test_a_strangers_body_is_small(folder: Path, tokens: Path) -> None:
    browser = client(folder, ServeConfig.of(folder, token_file=tokens))
    values = form(browser.get("/login").text, "/login")
    assert browser.post("/login", data=values | {"token": "x" * 5000}).status_code == 413
    answer = browser.post("/p/floods/criteria", data={"criteria": "x" * 100_000}, follow_redirects=False)
    assert answer.status_code == 413


def test_the_token_opens_the_page(folder: Path, tokens: Path) -> None:
    browser = client(folder, ServeConfig.of(folder, token_file=tokens))
    answer = browser.get(JUDGE)
    assert answer.url.path == "/login"
    assert "Valencia" not in answer.text
    values = form(answer.text, "/login")
    wrong = browser.post("/login", data=values | {"token": "wrong"})
    assert wrong.status_code == 403
    assert 'role="alert"' in wrong.text
    assert browser.post("/login", data={"token": TOKEN}).status_code == 403  # a forged form
    before = browser.cookies["linker-8000"]
    assert browser.post("/login", data=values | {"token": TOKEN}).url.path == "/"
    assert browser.cookies["linker-8000"] != before  # rules out session fixation
    page = browser.get(JUDGE)
    assert page.url.path == JUDGE
    browser.post("/logout", data={"csrf": form(page.text, "/logout")["csrf"]})
    assert browser.get(JUDGE).url.path == "/login"


def test_a_session_cannot_be_made_up_or_taken_elsewhere(folder: Path, tokens: Path) -> None:
    browser = client(folder, ServeConfig.of(folder, token_file=tokens))
    first = browser.get("/login").cookies or browser.cookies
    id_, issued, level, signature = first["linker-8000"].split(".")
    assert level == "out"
    for forged in (
        f"{id_}.{issued}.in.{signature}",
        f"{id_}.{issued}.in.",
        "a.1.in.b",
        f"{id_}.x.in.{signature}",
    ):
        browser.cookies.clear()
        assert browser.get(JUDGE, headers={"cookie": f"linker-8000={forged}"}).url.path == "/login"
    open_one = client(folder)
    open_one.get("/login")
    stolen = open_one.cookies["linker-8000"]  # from a server that lets everybody in
    browser.cookies.clear()
    assert browser.get(JUDGE, headers={"cookie": f"linker-8000={stolen}"}).url.path == "/login"


def test_cookies_are_out_of_reach_of_scripts(folder: Path) -> None:
    browser = client(folder)
    answer = browser.get(JUDGE)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Secure" not in cookie
    secure = client(folder, base="https://127.0.0.1:8000").get(JUDGE).headers["set-cookie"]
    assert "Secure" in secure


def test_behind_a_proxy_its_header_signs_in(folder: Path) -> None:
    browser = client(
        folder, ServeConfig.of(folder, proxy_header="X-Forwarded-User", allowed=("news.example",))
    )
    assert browser.get(JUDGE).status_code == 401
    assert browser.get(JUDGE, headers={"x-forwarded-user": "\x01"}).status_code == 401  # not a name
    headers = {"x-forwarded-user": "ana@news.example", "host": "news.example"}
    page = browser.get(JUDGE, headers=headers)
    assert page.status_code == 200
    assert "ana@news.example" in page.text
    values = form(page.text, "/judge") | {"verdict": "relevant"}
    browser.post(JUDGE, data=values, headers=headers | {"origin": "https://news.example"})
    (judgement,) = opened(browser.app, "floods").ledger.judgements()
    assert judgement.reviewer == "ana@news.example"
    evil = browser.post(JUDGE, data=values, headers=headers | {"origin": "https://evil.example"})
    assert evil.status_code == 403
    assert browser.get(JUDGE, headers=headers | {"host": "evil.example"}).status_code == 421


def test_a_form_leads_back_to_our_pages_only_and_no_other_files_are_sent(browser: TestClient) -> None:
    token = form(browser.get(JUDGE).text, "/judge")["csrf"]
    for back in ("//evil.example", "/\\evil.example", "https://evil.example", "javascript:x", "/a\nb"):
        data = {"csrf": token, "name": "ana", "back": back}
        answer = browser.post("/reviewer", data=data, follow_redirects=False)
        assert answer.headers["location"] == "/", back
    for path in ("/static/../config.py", "/static/%2e%2e/config.py", "/static/..%2fapp.py"):
        assert browser.get(path).status_code == 404, path


def test_our_own_fault_shows_no_traceback(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(ServeConfig.of(folder))

    def fail(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(app.state.shelf, "review", fail)
    answer = TestClient(app, base_url=BASE, raise_server_exceptions=False).get(JUDGE)
    assert answer.status_code == 500
    assert "secret detail" not in answer.text
    assert "Traceback" not in answer.text
    assert HEADERS.items() <= dict(answer.headers).items()
