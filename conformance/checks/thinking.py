"""`thinking.*`: is there as much reasoning as the request says?"""

__all__: list[str] = []
