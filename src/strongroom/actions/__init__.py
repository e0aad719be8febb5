"""Everything an account can do, one file a noun. An action is a paragraph: may I, look, decide, answer."""
