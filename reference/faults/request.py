"""`request.*`: what the endpoint takes and turns away wrongly."""
