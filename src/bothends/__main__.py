"""`python -m bothends` is `bothends`."""

from bothends.cli import main

if __name__ == "__main__":
    main()
