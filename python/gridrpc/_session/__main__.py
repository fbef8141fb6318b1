"""`gridrpc session`, which runs this with the Python that it finds."""

import sys

from gridrpc._session.command import main

sys.exit(main(sys.argv[1:]))
