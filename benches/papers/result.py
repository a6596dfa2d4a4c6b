"""What a paper says beside what was made here."""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Result", "table"]

_HEADINGS = ("of the paper", "what", "the paper says", "made here", "why they differ")


@dataclass(frozen=True)
class Result:
    """One value.

    Attributes:
        place: Number of the figure, table or theorem.
        what: What the value is.
        paper: The paper's value or claim.
        made: Ours.
        why: The reason of a difference; empty if there is none.
    """

    place: str
    what: str
    paper: str
    made: str
    why: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the result as text."""
        return self.place, self.what, self.paper, self.made, self.why


def table(results: Sequence[Result]) -> str:
    """Return results as a Markdown table; places and reasons that repeat are said once."""
    lines = ["| " + " | ".join(_HEADINGS) + " |", "|" + "---|" * len(_HEADINGS)]
    place = why = ""
    for result in results:
        cells = list(result.cells())
        if result.why == why and result.why and result.place == place:
            cells[-1] = "the same"
        if result.place == place:
            cells[0] = ""
        place, why = result.place, result.why
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)
