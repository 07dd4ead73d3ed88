"""How much load the target holds: Locust's users, our client, and a record of every request."""
