"""Tables of what is refused, which tests run against the functions, and the pages that they become."""
