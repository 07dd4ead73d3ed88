"""`python -m streamgauge` is the same as `streamgauge`."""

from streamgauge.cli import main

if __name__ == "__main__":
    main()
