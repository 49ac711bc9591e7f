"""`python -m framework` is `golden`."""

from framework.cli import main

if __name__ == "__main__":
    main()
