from typing import Any


def find_contract(account_number: str) -> dict[str, Any]:
    """Finds the contract of an account.

    Args:
        account_number: Six digits.
    """
    return {"account_number": account_number, "tariff": "Green Day", "until": "the end of June"}
