"""`structured.*`: does the answer have the form that the request demands?"""

__all__: list[str] = []
