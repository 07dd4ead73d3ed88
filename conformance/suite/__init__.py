"""The suite that pytest runs: `pytest --pyargs streamgauge.conformance.suite --sg-base-url URL --sg-spec NAME`."""
