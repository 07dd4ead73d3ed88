"""`calls.*`: are tools called as the request says?"""

__all__: list[str] = []
