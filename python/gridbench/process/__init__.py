"""A process of ours: how it is started, talked to, watched and ended, and what it printed."""
