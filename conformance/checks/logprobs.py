"""`logprobs.*`: are log-probabilities told as asked for, and true to the answer?"""

__all__: list[str] = []
