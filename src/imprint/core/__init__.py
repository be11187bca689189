"""Values, families, errors: what every other part of the library stands on."""
