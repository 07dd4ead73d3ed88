"""Writes SVG that needs neither scripts nor style sheets: presentation attributes only."""

from collections.abc import Iterable
from html import escape

__all__ = ["drawing", "element", "number"]


def number(value: float) -> str:
    """A coordinate, to a tenth of a unit."""
    return f"{value:.1f}".removesuffix(".0")


def element(name: str, *children: str, text: str = "", **attributes: str | float) -> str:
    """
    One element.

    Args:
        name: of the element.
        children: elements inside, as this function returns them.
        text: character data inside, escaped here; comes before the children.
        attributes: `_` in a name stands for `-`; numbers are written by :func:`number`.
    """
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    content = escape(text, quote=False) + "".join(children)
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def _value(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else number(value)


def drawing(name: str, title: str, description: str, width: int, height: int, children: Iterable[str]) -> str:
    """A whole drawing with its name and description for those who do not see it; `name` makes its ids unique."""
    return element(
        "svg",
        element("title", text=title, id=f"{name}-title"),
        element("desc", text=description, id=f"{name}-desc"),
        *children,
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        font_family="system-ui, sans-serif",
        font_size=12,
        fill="currentColor",
    )
