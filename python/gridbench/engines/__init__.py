"""The systems under test, each behind the small interface of `gridbench.engines.base`."""
