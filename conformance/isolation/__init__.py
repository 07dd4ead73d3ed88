"""Whether requests are kept apart: what tells them from each other, what is sent alone, and what the server counts."""
