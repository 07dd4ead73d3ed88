"""`tokens.*`: are tokens told as asked for?"""

__all__: list[str] = []
