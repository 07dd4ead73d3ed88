"""Answers that were stored before: `curl -i` output, HAR files, bundles; read, and matched with operations."""
