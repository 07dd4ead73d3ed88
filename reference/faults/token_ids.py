"""`tokens.*`: token ids that lack, or do not fit the answer."""

__all__: list[str] = []
