"""The documentation of the API: OpenAPI and an HTML page."""
