"""`pair.*`: where the two forms of one answer differ."""
