"""`prompt.*`: are prompts in all their forms understood, and repeated when asked for?"""

__all__: list[str] = []
