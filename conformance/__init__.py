"""Does the target keep its contract? Probes make exchanges, checks judge them."""
