"""Diagrams of the documentation, each for a light and a dark page.

    python docs/images/drawings.py

They are drawn for a width of 380 pixels, so that a phone shows them whole. Classes differ
by colour (Okabe and Ito's, which colour-blind people can tell apart) and by shape.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from math import cos, pi, sin
from pathlib import Path

HERE = Path(__file__).resolve().parent
WIDTH = 380  # of a drawing, in its own units: pixels on a phone
SHOWN = 570  # pixels on a wide screen
TEXT_SIZE = 13

Point = tuple[float, float]


@dataclass(frozen=True)
class Theme:
    """The colours of a page."""

    suffix: str  # of the file
    ink: str
    faint: str
    surface: str  # of boxes
    classes: tuple[str, str, str, str]


LIGHT = Theme(
    "", "#1b1b1b", "#6b6b6b", "#f1f3f5", ("#0072b2", "#b34700", "#00785a", "#8f4573")
)
DARK = Theme(
    "-dark",
    "#e6e6e6",
    "#a5a5a5",
    "#2a2d31",
    ("#6db9e8", "#f0a35e", "#4fcfa8", "#e0a3c6"),
)


@dataclass
class Drawing:
    """An SVG that grows by shapes."""

    theme: Theme
    height: float
    title: str
    parts: list[str] = field(default_factory=list)

    def text(
        self,
        at: Point,
        words: str,
        colour: str = "",
        anchor: str = "start",
        size: float = TEXT_SIZE,
        weight: int = 400,
    ) -> None:
        self.parts.append(
            f'<text x="{at[0]:g}" y="{at[1]:g}" fill="{colour or self.theme.ink}"'
            f' text-anchor="{anchor}" font-size="{size:g}" font-weight="{weight}">'
            f"{escape(words)}</text>"
        )

    def box(
        self, at: Point, width: float, height: float, fill: str = "", line: str = ""
    ) -> None:
        self.parts.append(
            f'<rect x="{at[0]:g}" y="{at[1]:g}" width="{width:g}" height="{height:g}"'
            f' rx="4" fill="{fill or self.theme.surface}"'
            f' stroke="{line or self.theme.faint}"/>'
        )

    def bar(self, at: Point, width: float, height: float, fill: str) -> None:
        self.parts.append(
            f'<rect x="{at[0]:g}" y="{at[1]:g}" width="{width:g}"'
            f' height="{height:g}" fill="{fill}"/>'
        )

    def line(self, start: Point, end: Point, colour: str = "", dash: str = "") -> None:
        pattern = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<line x1="{start[0]:g}" y1="{start[1]:g}" x2="{end[0]:g}"'
            f' y2="{end[1]:g}" stroke="{colour or self.theme.faint}"'
            f' stroke-width="1.5"{pattern}/>'
        )

    def curve(self, points: list[Point], colour: str, dash: str = "") -> None:
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        pattern = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}"'
            f' stroke-width="2.2"{pattern}/>'
        )

    def arrow(self, start: Point, end: Point) -> None:
        """A straight arrow, to the right or downwards."""
        self.line(start, end)
        (x, y), down = end, start[0] == end[0]
        wings = [(x - 4, y - 7), (x + 4, y - 7)] if down else [(x - 7, y - 4)]
        wings = wings if down else [*wings, (x - 7, y + 4)]
        path = " ".join(f"{a:g},{b:g}" for a, b in [*wings, end])
        self.parts.append(f'<polygon points="{path}" fill="{self.theme.faint}"/>')

    def mark(self, at: Point, of: int, radius: float, filled: bool = True) -> None:
        """A circle, a square, a triangle or a diamond: one shape for each class."""
        colour = self.theme.classes[of]
        style = f'fill="{colour if filled else "none"}" stroke="{colour}"'
        style += ' stroke-width="1.5"'
        (x, y), r = at, radius
        if of == 0:
            self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{r:g}" {style}/>')
            return
        corners = {1: 4, 2: 3, 3: 4}[of]
        turn = {1: pi / 4, 2: -pi / 2, 3: 0.0}[of]
        angles = [turn + 2 * pi * i / corners for i in range(corners)]
        path = " ".join(
            f"{x + 1.25 * r * cos(a):.1f},{y + 1.25 * r * sin(a):.1f}" for a in angles
        )
        self.parts.append(f'<polygon points="{path}" {style}/>')

    def svg(self) -> str:
        head = (
            '<svg xmlns="http://www.w3.org/2000/svg" role="img"'
            f' width="{SHOWN}" height="{self.height * SHOWN / WIDTH:g}"'
            f' viewBox="0 0 {WIDTH} {self.height:g}"'
            ' font-family="system-ui, -apple-system, Segoe UI, Arial, sans-serif">'
        )
        title = f"<title>{escape(self.title)}</title>"
        return "\n".join([head, title, *self.parts, "</svg>", ""])


# Rows of three classes in a plane, as a drawing has them: invented, with one class in
# two clusters, so that two proxies describe it better than one.
ROWS: dict[int, list[Point]] = {
    0: [(20, 22), (34, 14), (30, 34), (46, 26), (22, 46)],
    1: [(104, 18), (118, 28), (126, 12), (112, 38), (134, 34)],
    2: [(30, 96), (44, 108), (22, 112), (102, 98), (116, 108), (108, 118)],
}
PROXIES: dict[int, list[Point]] = {
    0: [(30, 28)],
    1: [(119, 26)],
    2: [(32, 105), (109, 108)],
}


def draw_plane(d: Drawing, at: Point, classes: tuple[int, ...], rows: bool) -> None:
    """Rows as outlines and proxies as filled shapes, in a box."""
    d.box(at, 152, 132)
    for c in classes:
        for x, y in ROWS[c] if rows else ():
            d.mark((at[0] + x, at[1] + y), c, 3.5, filled=False)
        for x, y in PROXIES[c]:
            d.mark((at[0] + x, at[1] + y), c, 7)


def proxies(theme: Theme) -> Drawing:
    """From an input to scores."""
    d = Drawing(
        theme,
        258,
        "An image becomes an embedding; its similarities to proxies give the scores",
    )
    d.text((8, 16), "1  Embed", weight=600)
    d.box((8, 26), 62, 46)
    d.text((39, 54), "input", anchor="middle")
    d.arrow((72, 49), (96, 49))
    d.box((98, 26), 92, 46)
    d.text((144, 46), "network,", anchor="middle")
    d.text((144, 62), "frozen", anchor="middle")
    d.arrow((192, 49), (216, 49))
    for i, height in enumerate((14, 30, 22, 8, 36, 18, 26, 12)):
        d.bar((222 + 10 * i, 68 - height), 7, height, theme.ink)
    d.text((303, 54), "embedding", size=12.5)
    d.text((8, 98), "2  Proxies", weight=600)
    draw_plane(d, (8, 108), (0, 1, 2), rows=True)
    d.text((84, 134 + 36), "?", anchor="middle", size=20, weight=700)
    d.text((8, 254), "outlines: rows, filled: proxies", theme.faint, size=12)
    d.arrow((164, 174), (190, 174))
    d.text((198, 98), "3  Scores", weight=600)
    for i, (of, width) in enumerate(((0, 58), (1, 84), (2, 24))):
        y = 128 + 36 * i
        d.mark((206, y + 10), of, 6)
        d.bar((222, y), width, 20, theme.classes[of])
    d.text((314, 128 + 51), "highest")
    d.text((198, 254), "of the query ?, by class", theme.faint, size=12)
    return d


def blocks(theme: Theme) -> Drawing:
    """An embedding in blocks, and how they are weighed."""
    d = Drawing(
        theme,
        226,
        "Each block is scaled to length one and weighed for the task; distances add up",
    )
    d.text((8, 16), "One pass through the network", weight=600)
    names = ("early layer", "middle layer", "last layer")
    for i, name in enumerate(names):
        x = 8 + 124 * i
        d.box((x, 26), 112, 34)
        d.text((x + 56, 48), name, anchor="middle")
        if i:
            d.arrow((x - 12, 43), (x, 43))
        d.arrow((x + 56, 60), (x + 56, 84))
        for j, height in enumerate((10, 22, 16, 28, 12, 20)):
            d.bar(
                (x + 22 + 12 * j, 118 - (height + 5 * i) % 29),
                8,
                (height + 5 * i) % 29,
                theme.classes[i],
            )
        d.text((x + 56, 136), "length 1", theme.faint, anchor="middle", size=12)
        d.arrow((x + 56, 144), (x + 56, 166))
        d.text((x + 56, 184), f"weight w{i + 1}", anchor="middle")
    d.box((8, 194), 360, 26)
    d.text(
        (188, 212), "distance² = sum of weight x distance² per block", anchor="middle"
    )
    return d


def add_forget(theme: Theme) -> Drawing:
    """A class is added and forgotten; the others stay."""
    d = Drawing(
        theme,
        392,
        "Adding a class appends its proxies; forgetting removes them; others do not change",
    )
    d.text((8, 16), "a model", weight=600)
    draw_plane(d, (8, 26), (0, 1), rows=False)
    d.arrow((164, 92), (216, 92))
    d.text((190, 84), "add", anchor="middle")
    d.text((220, 16), "with one more class", weight=600)
    draw_plane(d, (220, 26), (0, 1, 2), rows=False)
    d.arrow((296, 160), (296, 206))
    d.text((304, 188), "forget")
    d.text((220, 226), "as before, bit for bit", weight=600)
    draw_plane(d, (220, 236), (0, 1), rows=False)
    d.text((8, 226), "never saw the class", weight=600)
    draw_plane(d, (8, 236), (0, 1), rows=False)
    d.text((190, 310), "=", anchor="middle", size=26, weight=700)
    d.text(
        (8, 388), "The proxies of a class depend on its own rows alone.", theme.faint
    )
    return d


def calibration(theme: Theme) -> Drawing:
    """Five folds, and what their predictions are used for."""
    d = Drawing(
        theme,
        262,
        "Five models each predict the fifth of the rows that they have not seen",
    )
    d.text((8, 16), "Rows of every class, in five folds", weight=600)
    for model in range(5):
        y = 28 + 26 * model
        d.text((8, y + 15), f"model {model + 1}", theme.faint, size=12)
        for fold in range(5):
            held_out = fold == model
            fill = theme.classes[1] if held_out else theme.surface
            d.box((66 + 62 * fold, y), 56, 20, fill)
            if held_out:
                colour = "#ffffff" if theme is LIGHT else "#1b1b1b"
                d.text((94 + 62 * fold, y + 15), "predict", colour, "middle", 12)
    d.arrow((218, 160), (218, 180))
    d.box((8, 184), 362, 26)
    d.text((189, 202), "predictions of rows that no model has seen", anchor="middle")
    uses = ("expected accuracy", "temperature", "p-values: known")
    for x, use in zip((68, 200, 318), uses, strict=True):
        d.arrow((x, 212), (x, 232))
        d.text((x, 250), use, anchor="middle")
    return d


def tree(theme: Theme) -> Drawing:
    """The labels of the page on trees."""
    d = Drawing(
        theme, 176, "Five classes below two nodes: order and account, as a label tree"
    )
    nodes = {
        "order": (96, ("delivery", "return", "payment")),
        "account": (296, ("password", "profile")),
    }
    d.text((8, 20), "level 1", theme.faint, size=12)
    left = 2.0
    for of, (node, (x, leaves)) in enumerate(nodes.items()):
        for leaf in leaves:
            d.line((x, 42), (left + 37, 112), theme.classes[of])
            d.box((left, 112), 74, 28, line=theme.classes[of])
            d.text((left + 37, 131), leaf, anchor="middle", size=12.5)
            left += 76
        d.box((x - 42, 14), 84, 28, line=theme.classes[of])
        d.text((x, 33), node, anchor="middle", weight=600)
    d.text((8, 166), "P(order) = sum of the probabilities below it", theme.faint)
    return d


# Mean accuracy, in per cent: measured by benchmarks/choosing.py, 15 November 2026.
ROWS_PER_CLASS = (1, 5, 20, 100, 600)
IMAGES = {
    "kernel": (45.2, 66.3, 77.6, 84.1, 86.6),
    "imprint2025": (44.1, 58.0, 66.9, 75.6, 79.8),
    "qi2018": (44.1, 64.0, 71.2, 74.5, 75.5),
}
TEXTS = {
    "kernel": (53.3, 79.2, 89.7, 93.4),
    "imprint2025": (53.7, 74.6, 86.6, 91.0),
    "qi2018": (53.7, 76.5, 83.4, 84.9),
}
DASHES = ("", "7 4", "2 3")


def choosing(theme: Theme) -> Drawing:
    """Accuracy over the number of rows per class, by recipe."""
    d = Drawing(
        theme, 462, "Accuracy rises steeply up to twenty rows per class, then slowly"
    )
    panels = (
        ("Images: accuracy in % by rows per class", IMAGES),
        ("Texts (banking77): the same", TEXTS),
    )
    for panel, (title, curves) in enumerate(panels):
        top = 24 + 232 * panel
        d.text((36, top - 8), f"{title}", weight=600)
        for percent in (40, 60, 80, 100):
            y = top + 180 * (100 - percent) / 60
            d.line((36, y), (292, y), theme.surface)
            d.text((30, y + 4), str(percent), theme.faint, "end", 12)
        for i, rows in enumerate(ROWS_PER_CLASS):
            d.text((44 + 60 * i, top + 198), str(rows), theme.faint, "middle", 12)
        lowest = 0.0
        for of, (recipe, values) in enumerate(curves.items()):
            points = [
                (44 + 60 * i, top + 180 * (100 - value) / 60)
                for i, value in enumerate(values)
            ]
            d.curve(points, theme.classes[of], DASHES[of])
            for point in points:
                d.mark(point, of, 3.5)
            x, y = points[-1]
            # no label touches the one above it
            lowest = max(y + 4, lowest + 15)
            d.text((x + 9, lowest), recipe, theme.classes[of])
    return d


def confusion(theme: Theme, counts: list[list[int]], classes: list[str]) -> Drawing:
    """A confusion matrix: rows are labels, columns are predictions."""
    d = Drawing(
        theme, 252, "Confusion matrix: rows are labels, columns are predictions"
    )
    d.text((226, 16), "predicted", theme.faint, "middle")
    d.text((8, 142), "label", theme.faint)
    for i, name in enumerate(classes):
        d.text((136 + 90 * i, 38), name, anchor="middle", weight=600)
        d.text((84, 84 + 66 * i), name, anchor="end", weight=600)
        for j, count in enumerate(counts[i]):
            right = i == j
            fill = theme.classes[0] if right else theme.surface
            line = theme.classes[1] if count and not right else theme.faint
            d.box((92 + 90 * j, 48 + 66 * i), 86, 62, fill, line)
            on_fill = "#ffffff" if theme is LIGHT else "#1b1b1b"
            colour = on_fill if right else theme.ink
            d.text((135 + 90 * j, 85 + 66 * i), str(count), colour, "middle", 17)
    return d


DRAWINGS: dict[str, Callable[[Theme], Drawing]] = {
    "proxies": proxies,
    "blocks": blocks,
    "add-forget": add_forget,
    "calibration": calibration,
    "tree": tree,
    "choosing": choosing,
}


def measured_confusion() -> tuple[list[list[int]], list[str]]:
    """The counts of the example on the page about evaluation."""
    import tempfile

    import numpy as np

    from imprint import Imprinter, datasets
    from imprint.datasets.samples import write_sample

    with tempfile.TemporaryDirectory() as folder:
        write_sample("photos", Path(folder) / "photos")
        model = Imprinter(recipe="qi2018").fit(Path(folder) / "photos" / "train")
        test = datasets.load(Path(folder) / "photos" / "test")
        predicted = np.asarray(model.predict(list(test.inputs)))
    classes = [str(c) for c in test.classes]
    counts = [
        [int(((test.labels == a) & (predicted == b)).sum()) for b in classes]
        for a in classes
    ]
    return counts, classes


def drawn() -> dict[str, str]:
    """The drawings that follow from this file alone, by the name of their file."""
    return {
        f"{name}{theme.suffix}.svg": draw(theme).svg()
        for name, draw in DRAWINGS.items()
        for theme in (LIGHT, DARK)
    }


if __name__ == "__main__":
    counts, classes = measured_confusion()
    found = drawn() | {
        f"confusion{theme.suffix}.svg": confusion(theme, counts, classes).svg()
        for theme in (LIGHT, DARK)
    }
    for name, svg in found.items():
        (HERE / name).write_text(svg, encoding="utf-8", newline="\n")
