"""Draw the pictures of the start page and the README from what the start page's own code computes.

    python docs/pictures.py

Run it when a plot changes; the pictures are committed, since the README shows them too.
"""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Run the page's snippets, in order; each call of a plot leaves a figure, and each figure becomes a file."""
    blocks = re.findall(r"^```python\n(.*?)^```", (HERE / "start.md").read_text(), flags=re.DOTALL | re.MULTILINE)
    scope: dict[str, object] = {}
    for block in blocks:
        exec(block, scope)
        if found := re.search(r"gig\.plots\.(\w+)\(", block):
            path = HERE / "_static" / f"start_{found.group(1)}.png"
            plt.gcf().savefig(path, dpi=130, bbox_inches="tight")
            plt.close("all")
            print("wrote", path.relative_to(HERE.parent))


if __name__ == "__main__":
    main()
