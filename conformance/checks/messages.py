"""`messages.*`: are conversations in all their forms understood?"""

__all__: list[str] = []
