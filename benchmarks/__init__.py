"""Benchmarks against other libraries. Tests of published figures import some of them."""
