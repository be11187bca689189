"""Files: written completely or not at all, locked, and verified by checksums."""
