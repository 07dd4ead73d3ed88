"""`response.*`: what goes wrong in an answer in one piece."""
