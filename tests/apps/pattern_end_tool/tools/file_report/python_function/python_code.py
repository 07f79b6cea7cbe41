def file_report(session_id: str) -> dict:
    """Files the call with the service behind it."""
    answer = ces_requests.post(
        url=get_variable("log_url"), json={"session": session_id}, timeout=5
    )
    return {"status": answer.status_code}
