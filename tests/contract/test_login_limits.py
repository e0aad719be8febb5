"""How many wrong passwords and tokens an account and an address may send."""

from collections import Counter

import httpx2
import pytest

from tests.kit.network.responses import good, refused
from tests.kit.people.api_user import PASSWORD, ApiUser, at_once, unique_email
from tests.kit.servers.process import Server, fresh_address

from .jwt import resigned

LOGIN = "/auth/email/login"


def guess(http: httpx2.Client, email: str, password: str = "a wrong guess") -> httpx2.Response:
    """Try to log in."""
    return http.post(LOGIN, json={"email": email, "password": password})


def fail(http: httpx2.Client, email: str, times: int) -> None:
    """Guess wrongly a number of times, and be told so each time."""
    for _ in range(times):
        refused(guess(http, email), 401, "invalid_credentials")


def test_eleventh_guess(both: Server, newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """The eleventh wrong guess from one address gets a 429, and so does the right password after it."""
    fail(stranger, newcomer.email, 10)
    refused(guess(stranger, newcomer.email), 429, "rate_limited")
    refused(guess(stranger, newcomer.email, PASSWORD), 429, "rate_limited")
    elsewhere = both.connect(address=fresh_address())
    good(guess(elsewhere, newcomer.email, PASSWORD))
    assert newcomer.http.get("/auth/me").status_code == 200


def test_unknown_account(stranger: httpx2.Client) -> None:
    """An account that does not exist is guarded as one that does."""
    email = unique_email()
    fail(stranger, email, 10)
    refused(guess(stranger, email), 429, "rate_limited")


def test_spelling(stranger: httpx2.Client) -> None:
    """The count does not depend on how the email is spelled."""
    email = unique_email()
    for spelling in (email, email.upper(), f" {email}", f"{email}\t", email.title()) * 2:
        refused(guess(stranger, spelling), 401, "invalid_credentials")
    for spelling in (email.upper(), email, f"  {email}  "):
        refused(guess(stranger, spelling), 429, "rate_limited")


def test_other_accounts_of_the_address(newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """Who guessed too often at one account may still log in to another."""
    email = unique_email()
    fail(stranger, email, 10)
    refused(guess(stranger, email), 429, "rate_limited")
    good(guess(stranger, newcomer.email, PASSWORD))


def test_right_password_clears_the_count(newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """A correct login clears the count, so that the next eleventh guess is the first to be refused again."""
    fail(stranger, newcomer.email, 9)
    good(guess(stranger, newcomer.email, PASSWORD))
    fail(stranger, newcomer.email, 10)
    refused(guess(stranger, newcomer.email), 429, "rate_limited")


def test_address_is_not_taken_from_a_header(stranger: httpx2.Client) -> None:
    """A header that claims another address does not give more guesses."""
    email = unique_email()
    for number in range(10):
        stranger.headers.update({"X-Forwarded-For": f"10.0.0.{number}", "X-Real-IP": f"10.0.1.{number}"})
        stranger.headers["Forwarded"] = f"for=10.0.2.{number}"
        refused(guess(stranger, email), 401, "invalid_credentials")
    stranger.headers["X-Forwarded-For"] = "10.0.0.99"
    refused(guess(stranger, email), 429, "rate_limited")


def test_guesses_at_once(newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """Guessing in parallel gives no more guesses than guessing in turn."""
    answers: list[httpx2.Response] = at_once(30, lambda _: guess(stranger, newcomer.email))
    assert Counter(answer.status_code for answer in answers) == {401: 10, 429: 20}


def test_secrets_at_once(stranger: httpx2.Client) -> None:
    """Trying secrets in parallel gives no more tries than trying them in turn."""
    body = {"refreshToken": "a.b.c"}
    answers: list[httpx2.Response] = at_once(130, lambda _: stranger.post("/auth/refresh", json=body))
    assert Counter(answer.status_code for answer in answers) == {401: 100, 429: 30}


def test_bad_requests_are_no_guesses(newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """A request that is not even a login does not count as a failed one."""
    for _ in range(12):
        refused(stranger.post(LOGIN, json={"email": newcomer.email}), 400, "validation_error")
    good(guess(stranger, newcomer.email, PASSWORD))


@pytest.mark.parametrize("secret", ["refresh tokens", "API keys"])
def test_hundred_and_first_secret(both: Server, newcomer: ApiUser, secret: str) -> None:
    """After a hundred wrong secrets from one address the next gets a 429, there and nowhere else."""
    http, code = both.connect(address=fresh_address()), "unauthorized"
    if secret == "API keys":
        key = newcomer.key()
        good(newcomer.http.delete(f"/auth/api-keys/{key['uid']}"))
        http.headers["Authorization"] = f"Bearer {key['key']}"
    else:
        code = "invalid_refresh_token"
    forged = resigned(newcomer.refresh)[:-4] + "AAAA"

    def attempt() -> httpx2.Response:
        if secret == "API keys":
            return http.get("/vault")
        return http.post("/auth/refresh", json={"refreshToken": forged})

    for _ in range(100):
        refused(attempt(), 401, code)
    refused(attempt(), 429, "rate_limited")
    assert http.get("/health").status_code == 200
    refused(http.get("/nowhere"), 404)
    refused(http.patch("/vault"), 405)
    elsewhere = both.connect(address=fresh_address())
    good(elsewhere.post("/auth/refresh", json={"refreshToken": newcomer.refresh}))


def test_hundred_and_first_account(both: Server, newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """After a hundred failed logins over many accounts the address gets a 429, whatever it sends next."""
    for _ in range(100):
        refused(guess(stranger, unique_email()), 401, "invalid_credentials")
    refused(guess(stranger, unique_email()), 429, "rate_limited")
    refused(stranger.post(LOGIN, content=b"{", headers={"Content-Type": "text/plain"}), 429, "rate_limited")
    good(guess(both.connect(address=fresh_address()), newcomer.email, PASSWORD))


def test_success_is_not_limited(ann: ApiUser, stranger: httpx2.Client) -> None:
    """Calls that succeed are not counted, however many."""
    stranger.headers["Authorization"] = f"Bearer {ann.access}"
    for _ in range(150):
        assert stranger.get("/auth/me").status_code == 200
