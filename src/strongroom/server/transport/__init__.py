"""HTTP connections: sockets, parsing, batching, sending, and the process that runs them."""
