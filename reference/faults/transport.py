"""`http.*`: what goes wrong in the HTTP message."""
