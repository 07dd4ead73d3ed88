"""streamgauge: does an OpenAI-compatible endpoint keep its contract, and how much load does it hold?"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    """Read the version from the installed package, and only when somebody asks for it."""
    if name == "__version__":
        from importlib.metadata import version

        globals()[name] = version("streamgauge")
        return str(globals()[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
