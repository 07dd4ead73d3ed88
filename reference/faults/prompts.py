"""`prompt.*`: prompts that are misread, or not repeated."""

__all__: list[str] = []
