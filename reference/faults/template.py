"""`template.*`: prompts that are not built as asked for."""

__all__: list[str] = []
