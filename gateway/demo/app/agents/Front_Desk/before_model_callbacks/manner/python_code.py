from typing import Optional


def before_model_callback(
    callback_context: CallbackContext, llm_request: LlmRequest
) -> Optional[LlmResponse]:
    """Puts the manner that fits this caller into the instruction."""
    manner = callback_context.get_variable("manner", "friendly")
    if manner != "brief" and callback_context.get_variable("customer_tier") == "gold":
        manner = "gold"
    callback_context.set_variable(
        "current_manner", callback_context.get_variable(f"manner_{manner}")
    )
    return None
