"""`length.*`: limits that are not kept."""

__all__: list[str] = []
