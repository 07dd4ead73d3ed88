"""`ending.*`: how a stream fails to end."""
