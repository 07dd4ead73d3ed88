"""Probes: the named requests that make exchanges. One module for each topic, each a table."""
