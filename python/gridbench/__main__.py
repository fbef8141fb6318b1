"""`python -m gridbench`."""

from gridbench.program import main

if __name__ == "__main__":
    main()
