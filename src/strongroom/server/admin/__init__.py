"""What the operators' commands do with a service."""
