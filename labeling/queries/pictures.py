"""What a picture on a page is: its numbers as a table, and what to draw from them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Picture:
    """A picture and the table that is its only source. ``rows`` are texts, the first of each heads it.

    ``kind`` names the drawing in static/labeling/charts. ``reference``: a value to hold against, with
    ``reference_name``; ``band``: a range around it. ``apart``: the first text of a row that is drawn apart
    from the others.
    """

    kind: str
    title: str
    caption: str
    head: list[str]
    rows: list[list[str]]
    reference: float | None = None
    reference_name: str = ""
    band: tuple[float, float] | None = None
    apart: str = ""
