"""`error.*`: what goes wrong in how the endpoint says no."""
