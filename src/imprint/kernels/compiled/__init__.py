"""Loops that NumPy cannot express, compiled by numba; imported only where `kernels.engine` says so."""
