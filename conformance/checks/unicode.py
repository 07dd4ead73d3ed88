"""`utf8.*`: text beyond ASCII."""
