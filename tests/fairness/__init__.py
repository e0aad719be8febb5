"""One greedy account beside an honest one, on every route."""
