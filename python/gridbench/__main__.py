"""`python -m gridbench`."""

from gridbench.cli import main

if __name__ == "__main__":
    main()
