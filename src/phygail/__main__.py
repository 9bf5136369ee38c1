"""`python -m phygail`."""

import sys

from phygail.cli.main import main

sys.exit(main())
