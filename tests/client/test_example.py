"""Example of a client test: the blocking, the asynchronous and the TypeScript client, with a server process."""

import pytest

from tests.kit.clients.factory import ClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email


@pytest.mark.both_languages
def test_another_device_reads_what_one_wrote(clients: ClientFactory) -> None:
    """Encrypted by one, decrypted by the other."""
    email = unique_email()
    laptop, phone = clients.client(), clients.client()
    laptop.register(email, PASSWORD)
    phone.login(email, PASSWORD)
    note = laptop.vault("Personal", create=True).collection("notes").create({"title": "Hello"})
    assert phone.vault("Personal").collection("notes").get(note.uid).value == {"title": "Hello"}
