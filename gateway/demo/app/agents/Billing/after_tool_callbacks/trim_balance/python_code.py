from typing import Any, Optional


def after_tool_callback(
    tool: Tool,
    input: dict[str, Any],
    callback_context: CallbackContext,
    tool_response: dict[str, Any],
) -> Optional[dict[str, Any]]:
    """Keeps two of a record's many fields."""
    if tool.name != "get_balance":
        return None
    record = tool_response.get("result", tool_response)
    return {"euros": record["open_amount_euros"], "due": record["due"]}
