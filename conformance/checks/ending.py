"""`ending.*`: how a stream ends."""
