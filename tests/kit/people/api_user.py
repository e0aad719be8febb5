"""People who use the service, and the few things they do all the time."""

import itertools
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import httpx2

from tests.kit.network.paths import docs
from tests.kit.network.responses import Json, made
from tests.kit.servers.process import Server, fresh_address

PASSWORD = "correct horse battery staple"
_numbers = itertools.count(1)


def unique_email() -> str:
    """An email address that nobody has registered."""
    return f"person-{next(_numbers)}-{uuid.uuid4().hex[:8]}@example.com"


class ApiUser:
    """A registered user of a server in a process of its own, with an open session."""

    def __init__(self, server: Server, email: str, session: Json) -> None:
        self.server = server
        self.email = email
        self.id: str = session["user"]["id"]
        self.access: str = session["accessToken"]
        self.refresh: str = session["refreshToken"]
        self.http = server.connect(self.access)

    @classmethod
    def register(cls, server: Server) -> Self:
        """Register somebody new."""
        email = unique_email()
        with server.connect() as http:
            body = {"email": email, "password": PASSWORD}
            return cls(server, email, made(http.post("/auth/email/register", json=body)))

    def login(self) -> "ApiUser":
        """The same user in a second session."""
        with self.server.connect() as http:
            answer = http.post("/auth/email/login", json={"email": self.email, "password": PASSWORD})
            assert answer.status_code == 200, answer.text
            return ApiUser(self.server, self.email, answer.json())

    def vault(self, **fields: Any) -> Json:
        """Make a vault, under a new name unless one is given."""
        return made(self.http.post("/vault", json={"name": f"vault {uuid.uuid4()}"} | fields))

    def document(self, vault: Json, **fields: Any) -> Json:
        """Make a document in a vault."""
        return made(self.http.post(docs(vault), json={"collection": "notes", "data": "QUJD"} | fields))

    def put(self, vault: Json, document: Json, **fields: Any) -> httpx2.Response:
        """Replace a document at the version it was last seen."""
        body = {"data": "REVG", "version": document["version"]} | fields
        return self.http.put(docs(vault, document), json=body)

    def delete(self, vault: Json, document: Json) -> Json:
        """Delete a document, and read its tombstone."""
        assert self.http.delete(docs(vault, document)).status_code == 200
        return self.read(vault, document)

    def read(self, vault: Json, document: Json) -> Json:
        """Read a document as it is stored now."""
        answer = self.http.get(docs(vault, document))
        assert answer.status_code == 200, answer.text
        body: Json = answer.json()
        return body

    def key(self, **scopes: Any) -> Json:
        """Make an API key."""
        return made(self.http.post("/auth/api-keys", json={"name": "a key"} | scopes))

    def with_key(self, **scopes: Any) -> httpx2.Client:
        """A client that has nothing but a new API key, at an address of its own."""
        return self.server.connect(self.key(**scopes)["key"], fresh_address())


def at_once(count: int, call: Any) -> list[Any]:
    """Call `call(0)` … `call(count - 1)` at the same time, and collect what they give."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(call, range(count)))
