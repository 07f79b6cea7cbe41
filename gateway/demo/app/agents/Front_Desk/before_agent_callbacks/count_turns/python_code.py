from typing import Optional


def before_agent_callback(callback_context: CallbackContext) -> Optional[Content]:
    """Counts the caller's turns; returning nothing lets the agent work."""
    turns = callback_context.get_variable("caller_turns", 0)
    callback_context.set_variable("caller_turns", turns + 1)
    return None
