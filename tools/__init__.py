"""Commands for developers of strongroom; not part of the package."""
