"""The secret that the servers of the tests sign with."""

SECRET = "a secret of the tests, 32 bytes or more"
