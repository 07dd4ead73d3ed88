"""Load metrics: pure functions over the records of a run."""
