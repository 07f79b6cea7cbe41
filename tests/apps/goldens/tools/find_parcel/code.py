from typing import Any


def find_parcel(number: str) -> dict[str, Any]:
    """Finds a parcel."""
    set_variable("parcel", number)
    return {"number": number, "day": "Monday"}
