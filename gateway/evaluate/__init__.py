"""Evaluations of an app: golden conversations and scenarios, run and compared."""
