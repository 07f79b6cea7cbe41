from typing import Optional


def after_agent_callback(callback_context: CallbackContext) -> Optional[Content]:
    """Remembers who spoke last, for the call log."""
    callback_context.set_variable("last_agent", callback_context.agent_name)
    return None
