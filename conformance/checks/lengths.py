"""`length.*`: do limits on prompt and answer hold?"""

__all__: list[str] = []
