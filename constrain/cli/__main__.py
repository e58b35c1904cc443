"""``python -m constrain.cli``: the same as the `constrain` command."""

import sys

from constrain.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
