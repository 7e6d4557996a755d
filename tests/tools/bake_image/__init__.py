"""Tests of the tool that makes an image for nodes."""
