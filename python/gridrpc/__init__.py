"""gridrpc."""
