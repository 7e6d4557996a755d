"""Tables of refusals: tests run them against the functions, and `make docs` makes pages of them."""
