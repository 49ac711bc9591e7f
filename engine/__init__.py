"""A dynamic-batching inference engine whose tokens depend on the request alone.

A token's bits depend on the weights, the dtype, that request's own tokens and seed, and the environment, and on
nothing else: not on the batch, the chunking, an eviction, the scheduling mode, the arrival order or the threads.
"""
