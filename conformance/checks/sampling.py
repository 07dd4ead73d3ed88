"""`sampling.*`: do the sampling parameters and the number of choices have their effect?"""

__all__: list[str] = []
