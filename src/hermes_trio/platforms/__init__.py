"""Chat platforms: the protocol that an adapter fulfils, outcomes, and a folder per adapter."""
