"""What all tests need."""

import signal

# A shell that runs the tests in the background has them ignore Ctrl-C, and whatever they start
# would inherit that: tests of Ctrl-C need it as a terminal gives it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
