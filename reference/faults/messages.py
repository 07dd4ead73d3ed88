"""`messages.*`: conversations that are misread or refused."""

__all__: list[str] = []
