"""`utf8.*`: what happens to text beyond ASCII."""
