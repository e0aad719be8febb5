"""Registering, logging in, and asking who one is."""

import statistics
import time

import httpx2
import pytest

from tests.kit.network.responses import good, made, refused
from tests.kit.people.api_user import PASSWORD, ApiUser, at_once, unique_email
from tests.kit.servers.process import Server, fresh_address

from .checks import is_uuid7, refused_fields, without_id

REGISTER, LOGIN = "/auth/email/register", "/auth/email/login"


def test_register(stranger: httpx2.Client) -> None:
    """A registration answers with both tokens and the user, and with no trace of the password."""
    email = unique_email()
    answer = stranger.post(REGISTER, json={"email": email, "password": PASSWORD})
    body = made(answer)
    assert body["user"]["email"] == email
    assert is_uuid7(body["user"]["id"])
    assert body["token"] == body["accessToken"] != body["refreshToken"]
    assert PASSWORD not in answer.text
    assert "hash" not in answer.text.lower()
    assert "set-cookie" not in answer.headers


def test_login(ann: ApiUser, stranger: httpx2.Client) -> None:
    """A login answers as the registration did, and opens a session of its own."""
    body = good(stranger.post(LOGIN, json={"email": ann.email, "password": PASSWORD}))
    assert body["user"]["id"] == ann.id
    assert body["user"]["email"] == ann.email
    assert body["token"] == body["accessToken"] != ann.access
    assert body["refreshToken"] != ann.refresh


def test_me(ann: ApiUser) -> None:
    """A user who asks who they are learns their id and email, and nothing of the password."""
    answer = ann.http.get("/auth/me")
    body = good(answer)
    assert body["user"]["id"] == ann.id
    assert body["user"]["email"] == ann.email
    assert body.get("apiKey") is None
    assert "password" not in answer.text.lower()


def test_only_ascii_letters_have_a_case(stranger: httpx2.Client) -> None:
    """`Ä` and `ä` are two accounts; the case of A to Z counts neither when one is made nor when one is looked for."""
    end = unique_email()
    spelled = [f"\u00c4nne.{end}", f"\u00e4nne.{end}", f"\ua7cb{end}", f"\u212a{end}", f"k{end}"]
    made = {}
    for email in spelled:
        body = good(stranger.post(REGISTER, json={"email": email.replace("nne", "NNE"), "password": PASSWORD}), 201)
        assert body["user"]["email"] == email
        made[email] = body["user"]["id"]
    assert len({*made.values()}) == len(spelled)
    for email, uid in made.items():
        shouted = "".join(letter.upper() if letter.isascii() else letter for letter in email)
        for typed in (email, shouted, f"  {shouted}\n"):
            assert good(stranger.post(LOGIN, json={"email": typed, "password": PASSWORD}))["user"]["id"] == uid
        refused(stranger.post(REGISTER, json={"email": shouted, "password": PASSWORD}), 409, "email_already_exists")


def test_email_is_taken_once(ann: ApiUser, stranger: httpx2.Client) -> None:
    """An email is registered once, however it is spelled."""
    umlaut = f"ä{unique_email()}"
    made(stranger.post(REGISTER, json={"email": umlaut, "password": PASSWORD}))
    for spelling in (ann.email, ann.email.upper(), f"  {ann.email}\t", f"ä{umlaut[1:].upper()}"):
        answer = stranger.post(REGISTER, json={"email": spelling, "password": PASSWORD})
        refused(answer, 409, "email_already_exists")


def test_email_is_taken_once_at_once(stranger: httpx2.Client) -> None:
    """Of many registrations of one email at the same time one succeeds."""
    email = unique_email()
    body = {"email": email, "password": PASSWORD}
    answers: list[httpx2.Response] = at_once(6, lambda _: stranger.post(REGISTER, json=body))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 5
    for answer in answers:
        if answer.status_code == 409:
            refused(answer, 409, "email_already_exists")


def test_email_spelling_at_login(stranger: httpx2.Client) -> None:
    """Whoever registered with capitals and spaces logs in without them, and the other way round."""
    email = unique_email()
    user = made(stranger.post(REGISTER, json={"email": f" {email.upper()} ", "password": PASSWORD}))["user"]
    assert user["email"].lower() == email
    for spelling in (email, email.title(), f"\n{email} "):
        body = good(stranger.post(LOGIN, json={"email": spelling, "password": PASSWORD}))
        assert body["user"]["id"] == user["id"]


def test_wrong_password_and_unknown_email_look_alike(ann: ApiUser, stranger: httpx2.Client) -> None:
    """A wrong password and an unknown email get the same answer."""
    wrong = stranger.post(LOGIN, json={"email": ann.email, "password": "not the password"})
    unknown = stranger.post(LOGIN, json={"email": unique_email(), "password": "not the password"})
    refused(wrong, 401, "invalid_credentials")
    refused(unknown, 401, "invalid_credentials")
    assert without_id(wrong) == without_id(unknown)


def test_wrong_password_and_unknown_email_take_the_same_time(both: Server, ann: ApiUser) -> None:
    """The time of a refusal does not tell whether the account exists."""
    http = both.connect(address=fresh_address())

    def spent(email: str) -> float:
        start = time.perf_counter()
        answer = http.post(LOGIN, json={"email": email, "password": "not the password"})
        refused(answer, 401, "invalid_credentials")
        return time.perf_counter() - start

    pairs = [(spent(ann.email), spent(unique_email())) for _ in range(7)]
    known, unknown = (statistics.median(times) for times in zip(*pairs, strict=True))
    assert 0.3 < unknown / known < 3


def test_validation_does_not_echo_the_password(stranger: httpx2.Client) -> None:
    """A refused registration does not send the password back."""
    secret = "do-not-echo-" * 100
    answer = stranger.post(REGISTER, json={"email": "nonsense", "password": secret})
    refused_fields(answer, "email", "password")
    assert "do-not-echo" not in answer.text


@pytest.mark.parametrize(
    "password",
    ["пароль из слов", " leading and trailing ", "\x00\x01\x1f\x7f control", "🗝" * 8, "x" * 1024, "🗝" * 1024],
    ids=["cyrillic", "spaces", "control", "eight keys", "1024 letters", "1024 keys"],
)
def test_any_characters_make_a_password(stranger: httpx2.Client, password: str) -> None:
    """A password is any text of 8 to 1,024 characters, and opens the account it was set for."""
    body = {"email": unique_email(), "password": password}
    user = made(stranger.post(REGISTER, json=body))["user"]
    assert good(stranger.post(LOGIN, json=body))["user"]["id"] == user["id"]


@pytest.mark.parametrize("change", [lambda p: p[:-1], lambda p: p + " ", str.upper, str.strip], ids=range(4))
def test_every_character_of_a_password_counts(stranger: httpx2.Client, change: object) -> None:
    """No part of a password is cut off, trimmed or folded."""
    assert callable(change)
    body = {"email": unique_email(), "password": "a" * 100 + " Long Password with an end "}
    made(stranger.post(REGISTER, json=body))
    answer = stranger.post(LOGIN, json=body | {"password": change(body["password"])})
    refused(answer, 401, "invalid_credentials")
