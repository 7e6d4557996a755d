"""Real frameworks: their scripts in examples/frameworks, the page about them, and rehearsals with their libraries."""
