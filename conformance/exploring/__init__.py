"""Explorations: requests that Hypothesis draws, judged as they come; what departs is made as small as it gets."""
