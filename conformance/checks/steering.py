"""`steering.*`: are tokens banned, forced and allowed as the request says?"""

__all__: list[str] = []
