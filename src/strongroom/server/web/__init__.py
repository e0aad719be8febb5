"""The web app: static files that the build wrote, with their SHA-256 in a manifest; no content of anybody."""
