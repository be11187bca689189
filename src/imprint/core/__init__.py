"""Components, families, plug-ins and errors, on which all other packages rely; the
version of this package.
"""

__version__ = "0.1.0"
