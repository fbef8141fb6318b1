"""Advice: how to cut a user's own work, how many cores to ask for, and what to send how."""
