from typing import Any


def post_call_log(reason: str) -> dict[str, Any]:
    """Logs how the call went. Runs before the session ends.

    Args:
        reason: Why the call ends.
    """
    turns = get_variable("caller_turns", 0)
    last_agent = get_variable("last_agent", "")
    reference = f"NL-{turns:03d}"
    set_variable("call_reference", reference)
    # Figures and names of agents only: a call log holds none of the caller's words.
    print(f"call logged: reference={reference} reason={reason!r} last_agent={last_agent!r}")
    return {"logged": True, "reference": reference}
