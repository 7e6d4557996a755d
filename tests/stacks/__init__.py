"""Tests of what is deployed, on synthesised templates: no AWS, no Docker, no network."""
