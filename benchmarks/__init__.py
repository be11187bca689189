"""Measurements against named peers. Tests of published figures import some of them."""
