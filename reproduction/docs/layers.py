"""Write the tables of `beyond/layers.md`.

    python reproduction/docs/layers.py RESULTS

The folder is that of `imprint study run beyond/layers`. What stands between
`<!-- NAME -->` and `<!-- end of NAME -->` is replaced; the words around it are written
by hand.
"""

import re
import sys
from pathlib import Path

from imprint_reproduction.beyond import (
    claims_table,
    judged_claims,
    read_run,
    tables,
    tally,
)

PAGE = Path(__file__).resolve().parent / "beyond" / "layers.md"


def main(folder: Path) -> None:
    results = read_run(folder)
    claims = judged_claims(results)
    parts = {"claims": "\n".join([tally(claims), "", *claims_table(claims).markdown()])}
    for name, table in tables(results).items():
        parts[name] = "\n".join(table.markdown())
    page = PAGE.read_text(encoding="utf-8")
    for name in re.findall(r"<!-- end of (.+) -->", page):
        start = f"<!-- {name} -->\n"
        end = f"<!-- end of {name} -->"
        before = page.split(start)[0]
        after = page.split(end)[1]
        # empty without a network of tokens
        part = parts.pop(name, "").strip()
        page = f"{before}{start}{part}\n{end}{after}"
    if parts:
        raise SystemExit(f"The page has no place for {', '.join(parts)}.")
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
