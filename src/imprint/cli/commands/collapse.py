"""Measure the neural collapse of a data set's embeddings.

That is how close the embeddings of each class are to their mean, and how evenly the
means are spread.
"""

from dataclasses import asdict

from imprint import datasets
from imprint.cli import files, options, terminal
from imprint.cli.commands.embed import embed_split
from imprint.collapse import cdnv, nc1, nc2, vci
from imprint.core.arrays import Array
from imprint.imprinter.embedder import BackboneEmbedder

MEANINGS = {
    "nc1": "variance within classes relative to that between classes; 0 when collapsed",
    "cdnv": "the same ratio, averaged over pairs of classes; 0 when collapsed",
    "vci": "variability collapse index; 0 when collapsed, 1 without collapse",
    "equinorm": "NC2: variation of the norms of the centred class means; 0 when equal",
    "equiangular": (
        "NC2: deviation of their angles from maximal and equal; 0 when collapsed"
    ),
    "etf": "NC2: deviation of the class means from a simplex ETF; 0 when collapsed",
}


def command(
    data: str = options.DATA,
    *,
    columns: options.DataColumns,
    network: options.Network,
    json: bool = options.JSON,
) -> int:
    files.check_home(advice="")
    with terminal.progress_bars() as bars:
        split = datasets.load(data, progress=bars.download, **vars(columns))
        embedder = BackboneEmbedder(
            network.backbone, True, network.device, network.threads
        )
        rows = embed_split(embedder, split, bars.embedding())
    X = rows.X
    n, d = X.shape
    # `datasets.load` refuses data without labels
    y: Array = rows.y  # type: ignore[assignment]
    metrics: dict[str, float | None] = {"nc1": nc1(X, y), "cdnv": cdnv(X, y)}
    # with no more rows than columns it is always 0
    metrics["vci"] = vci(X, y) if n > d else None
    metrics |= asdict(nc2(X, y))
    if json:
        backbone = embedder.spec if split.kind.needs_backbone else None
        terminal.emit({"data": data, "backbone": backbone, "rows": n, **metrics})
    else:
        texts = {
            name: "-" if value is None else f"{round(value, 4) + 0.0:.4f}"
            for name, value in metrics.items()
        }
        lines = [(name, texts[name], meaning) for name, meaning in MEANINGS.items()]
        terminal.table(["metric", "value", "meaning"], lines, right=["value"])
        if metrics["vci"] is None:
            terminal.note(
                "vci cannot be computed: it needs more rows than columns, and there"
                f" are {n:,} and {d:,}."
            )
    return terminal.report_skipped(rows.skipped)
