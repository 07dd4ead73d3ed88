"""`finish.*`: what goes wrong in why and when a choice ended."""
