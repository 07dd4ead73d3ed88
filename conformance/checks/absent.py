"""`absent.*`: does null, or the default, mean the same as leaving a property out?"""

__all__: list[str] = []
