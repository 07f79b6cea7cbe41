def set_manner(manner: str) -> dict:
    """Remembers how the caller wants to be answered.

    Args:
        manner: friendly or brief.
    """
    if manner not in ("friendly", "brief"):
        return {"agent_action": "Offer the caller friendly or brief answers."}
    set_variable("manner", manner)
    return {"manner": manner}
