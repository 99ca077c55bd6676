"""`python -m rectifit` is the command line."""

from rectifit.cli import main

if __name__ == "__main__":
    main()
