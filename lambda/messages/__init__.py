"""Messages that an execution's end sends to a queue: what they say, and how a function works through them."""
