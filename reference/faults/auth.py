"""`auth.*`: who gets in and who does not."""
