"""`logprobs.*`: log-probabilities that lack, or do not fit the answer."""

__all__: list[str] = []
