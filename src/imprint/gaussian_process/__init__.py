"""The linear system behind `kernel`: proxies that decide together, solved, and corrected when classes come and go.

`system` says what it is, `changes` solves and corrects it, `landmarks` solves the largest through some of its proxies;
`gaussian` and `cholesky` are what all of them calculate with.
"""
