"""`pair.*`: the streamed and the whole form of one request say the same."""
