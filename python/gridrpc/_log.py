"""The logger of the package: `logging.getLogger("gridrpc")`."""

import logging

logger = logging.getLogger("gridrpc")
logger.addHandler(logging.NullHandler())
