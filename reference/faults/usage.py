"""`usage.*`: what goes wrong in what the answer says it cost."""
