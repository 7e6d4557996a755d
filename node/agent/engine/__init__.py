"""Moves the bytes of checkpoints: small files in packs, large ones in parts, each read once and hashed as it is read."""
