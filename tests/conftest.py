"""What all tests need."""

import signal

from fresh import environment, full_environment, packages, sdist, unpacked, wheel

#: Fixtures for all folders.
__all__ = ["environment", "full_environment", "packages", "sdist", "unpacked", "wheel"]

# Whoever runs the tests in the background may have them ignore Ctrl-C or the end of the terminal,
# and whatever they start would inherit that: tests need these signals as a terminal gives them.
for number, usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)
