"""k-means on a GPU by Triton programs: whole batches of problems at once.

Imported only for rows on a GPU, so torch is imported at the top of these files and
nowhere else.
"""
