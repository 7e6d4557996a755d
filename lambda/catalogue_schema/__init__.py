"""Brings the schema of the catalogue's database up to date during a deploy, and gives the reader its password."""
