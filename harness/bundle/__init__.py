"""The directory of one run: everything observed, one line each, appended as it happens."""
