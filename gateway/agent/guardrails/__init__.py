"""Guardrails: what may reach the model, and what may reach the caller."""
