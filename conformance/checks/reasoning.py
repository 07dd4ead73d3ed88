"""`reasoning.*`: thoughts beside the answer."""
