"""The kernels on torch tensors: whole batches at once, for a GPU, and correct on the CPU.

Imported only where a tensor is at hand, so torch is imported at the top of these files and nowhere else.
"""
