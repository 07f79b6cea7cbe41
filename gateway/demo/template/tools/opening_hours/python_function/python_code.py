from typing import Any


def opening_hours(day: str) -> dict[str, Any]:
    """Says when somebody is there on a day of the week.

    Args:
        day: Name of the day, such as Monday.
    """
    if day.strip().lower() in ("saturday", "sunday"):
        return {"open": False}
    return {"open": True, "opens": "nine in the morning", "closes": "five in the afternoon"}
