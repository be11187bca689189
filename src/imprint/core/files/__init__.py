"""Files: written whole or not at all, locked, checked against their checksums."""
