"""`reasoning.*`: what goes wrong with thoughts."""
