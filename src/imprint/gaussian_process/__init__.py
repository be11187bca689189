"""The Gaussian process behind the aggregator `kernel`: one linear system over all
proxies.

`posterior` solves the system, answers queries, and adds and removes classes. `nystroem`
solves very large systems through some of the proxies, and `local` solves a small system
for each query. All of them compute with `scale`, `gaussian` and `cholesky`.
"""
