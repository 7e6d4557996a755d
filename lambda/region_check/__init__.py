"""Refuses a deploy that forgets a region whose stack stands: nothing would look after it any more."""
