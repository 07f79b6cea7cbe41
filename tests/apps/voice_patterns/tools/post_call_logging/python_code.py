def post_call_logging(session_id: str) -> dict:
    context.state["_logged"] = session_id
    return {"logged": True}
