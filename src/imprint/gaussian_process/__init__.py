"""The linear system behind `kernel`: proxies that decide together.

`posterior` says what a solved system answers, `update` solves it and adds and removes classes, `nystroem` solves the
largest through some of its proxies; `scale`, `gaussian` and `cholesky` are what all of them compute with.
"""
