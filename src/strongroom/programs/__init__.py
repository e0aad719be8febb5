"""Programs that run with secrets: references in environments and templates, masked output."""
