"""`python -m ktrainer` is the same program as `ktrainer`."""

import sys

from ktrainer.cli.main import main

sys.exit(main())
