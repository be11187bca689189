"""Loops that NumPy cannot express, compiled by numba; imported only where `kernels.cpu` says so."""
