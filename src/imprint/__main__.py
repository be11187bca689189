"""`python -m imprint`: the same as the command `imprint`."""

import sys

from imprint.cli import main

if __name__ == "__main__":
    sys.exit(main())
