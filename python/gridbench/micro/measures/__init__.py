"""What is measured: each function runs in the client process of a session, and gives one point."""
