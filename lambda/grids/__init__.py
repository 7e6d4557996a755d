"""What has become of a grid's lines, the files and the report about it, and how a grid that does not end by itself is ended."""
