"""Measurements: `python -m bench [NAME …]`. Timings live here, never in a test's assertion."""
