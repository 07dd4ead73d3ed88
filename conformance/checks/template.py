"""`template.*`: is the prompt built from the conversation as the request says?"""

__all__: list[str] = []
