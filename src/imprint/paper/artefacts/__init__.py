"""One file for every table and figure; each holds `artefact`."""
