"""Ask, Tell and Report: the function of the Search machine."""
