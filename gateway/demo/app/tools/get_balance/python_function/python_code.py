from typing import Any


def get_balance(account_number: str) -> dict[str, Any]:
    """Finds the open balance of an account.

    Args:
        account_number: Six digits.
    """
    # A billing system answers with far more than a caller wants to hear.
    return {
        "account_number": account_number,
        "open_amount_euros": 84,
        "due": "the first of the month",
        "currency": "EUR",
        "ledger": "NL-2",
        "dunning_level": 0,
        "last_booking": "B-20931",
        "tax_code": "A1",
    }
