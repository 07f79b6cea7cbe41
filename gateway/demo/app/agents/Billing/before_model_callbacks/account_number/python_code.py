import re
from typing import Optional

PRESSED = re.compile(r"user pressed (\S+) on keypad")
ASK = "Please enter your six digit account number, then press the pound key."
ASK_AGAIN = "That was not six digits. Please enter your account number again."


def _ask(words: str) -> LlmResponse:
    return LlmResponse.from_parts(
        [
            Part.from_customized_response(
                content=words, enable_dtmf=True, dtmf_finish_digit="#", dtmf_endpointing_timeout=5
            )
        ]
    )


def before_model_callback(
    callback_context: CallbackContext, llm_request: LlmRequest
) -> Optional[LlmResponse]:
    """Asks for the account number once, and keeps what was keyed in."""
    texts = [part.text for part in callback_context.get_last_user_input() if part.text]
    if not texts:
        return None
    pressed = PRESSED.search(texts[-1])
    if pressed:
        if not re.fullmatch(r"\d{6}", pressed.group(1)):
            return _ask(ASK_AGAIN)
        callback_context.set_variable("account_number", pressed.group(1))
    elif "contract" in texts[-1].lower() and not callback_context.get_variable("account_number"):
        return _ask(ASK)
    return None
