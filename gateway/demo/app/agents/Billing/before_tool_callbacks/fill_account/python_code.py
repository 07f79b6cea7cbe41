from typing import Any, Optional


def before_tool_callback(
    tool: Tool, input: dict[str, Any], callback_context: CallbackContext
) -> Optional[dict[str, Any]]:
    """Gives tools the account number of this call; changing `input` is enough."""
    if tool.name in ("get_balance", "find_contract", "take_payment", "submit_meter_reading"):
        known = callback_context.get_variable("account_number")
        input["account_number"] = known or "100000"
    return None
