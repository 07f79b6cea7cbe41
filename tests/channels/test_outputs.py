"""What the agent leaves fits where it is put, and nothing of it overrides what stands there."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gateway.channels.asterisk_ari import MAX_VALUE_CHARS, MAX_VARIABLES, AsteriskAri
from gateway.channels.bandwidth_rest import TAG_BYTES, BandwidthRest
from gateway.channels.dialect import CallRef, Hook, Request, RestRequest
from gateway.channels.dialects import DIALECTS
from gateway.channels.outputs import (
    MAX_URL_CHARS,
    after_dialled,
    after_hangup,
    after_transfer,
    as_json,
    outputs_of,
)
from gateway.channels.telnyx_rest import TelnyxRest
from gateway.channels.twilio_rest import TwilioRest
from gateway.platform_settings import (
    AsteriskSettings,
    BandwidthSettings,
    PlatformsSettings,
    TelnyxSettings,
    TwilioSettings,
)

VALUES = st.text() | st.integers(-(2**53), 2**53) | st.none()
PARAMS = st.dictionaries(st.text(min_size=1), VALUES, max_size=20)
PAGE = "https://flows.example.com/next?action=mine&team=a%20b"


def query(url: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(url).query, keep_blank_values=True)


# ---- addresses


def test_an_ended_call_goes_on_only_with_something_to_tell() -> None:
    said = {"params": {"order": 7, "vip": True, "note": "a&b", "none": None}}
    assert after_hangup(None, said) == ""
    assert after_hangup(PAGE, {}) == ""
    assert after_hangup(PAGE, {"params": {}}) == ""
    assert after_hangup("https://h/x", said) == (
        "https://h/x?action=hangup&order=7&vip=true&note=a%26b"
    )


def test_a_call_that_is_handed_on_goes_on_in_any_case() -> None:
    assert after_transfer(None, "", {}) == ""
    assert after_transfer("https://h", "", {}) == "https://h?action=transfer"
    assert query(after_transfer("https://h/x", "+1555", {"params": {"a": "1"}})) == {
        "action": ["transfer"],
        "target": ["+1555"],
        "a": ["1"],
    }


def test_what_the_gateway_has_done_itself_is_not_told() -> None:
    params = {"PHONE_GATEWAY_TRANSFER": {"phoneNumber": "1"}, "ESCALATION_MESSAGE": "Bye."}
    assert outputs_of({"params": {**params, "LIVE_AGENT_HANDOFF": {"queue": "gold"}}}) == {
        "LIVE_AGENT_HANDOFF": '{"queue":"gold"}'
    }
    assert after_hangup("https://h", {"params": params}) == ""


def test_the_query_that_stands_there_is_never_overridden() -> None:
    url = after_hangup(PAGE, {"params": {"team": "stolen", "new": "1"}})
    assert url.startswith(PAGE + "&")
    assert query(url) == {"action": ["mine"], "team": ["a b"], "new": ["1"]}


def test_no_output_passes_for_ours_or_takes_its_room() -> None:
    said = {
        "params": {
            "action": "hangup",
            "target": "+1900",
            **dict.fromkeys(map(str, range(900)), "1"),
        }
    }
    url = after_transfer("https://h/x", "+1555", said)
    assert len(url) <= MAX_URL_CHARS
    assert (query(url)["action"], query(url)["target"]) == (["transfer"], ["+1555"])


@given(PARAMS)
def test_addresses_are_bounded_and_hold_whole_values(params: dict[str, Any]) -> None:
    url = after_hangup(PAGE, {"params": params})
    assert len(url) <= MAX_URL_CHARS
    outputs = outputs_of({"params": params})
    for name, values in query(url or PAGE).items():
        assert name in ("action", "team") or values == [outputs[name]]


def test_what_is_too_long_is_left_out_and_the_rest_is_told() -> None:
    url = after_hangup("https://h/x", {"params": {"long": "x" * 2000, "short": "1"}})
    assert query(url) == {"action": ["hangup"], "short": ["1"]}


@pytest.mark.parametrize(
    "url", ["http://flows.example.com/", "ftp://h/", "/next", "https://", "https://h/#x"]
)
def test_only_whole_addresses_by_tls_are_taken(url: str) -> None:
    with pytest.raises(ValidationError):
        TwilioSettings(continue_url=url)
    with pytest.raises(ValidationError):
        TwilioSettings(continue_url="https://h/" + "x" * 1000)
    assert TwilioSettings(continue_url="http://127.0.0.1:1/x").continue_url


# ---- tags and states


@given(PARAMS, st.integers(0, 300))
def test_json_is_whole_and_bounded(params: dict[str, Any], room: int) -> None:
    outputs = outputs_of({"params": params})
    text = as_json(outputs, room)
    assert len(text.encode()) <= room
    if text:
        assert orjson.loads(text).items() <= outputs.items()


def test_bandwidth_s_tag_takes_what_fits() -> None:
    rest = BandwidthRest(BandwidthSettings(account="a", api_key="k"))
    said = {"params": {"order": "7", "story": "x" * TAG_BYTES}}
    (end,) = rest.hangup(CallRef("c"), said)
    assert end.json == {"state": "completed", "tag": '{"order":"7"}'}
    (move,) = rest.transfer(CallRef("c"), "+1555", said)
    assert b"<Bxml><Tag>{" in move.xml
    (odd,) = rest.transfer(CallRef("c"), "+1555", {"params": {"a": "<\x00\ufffe\x85>&"}})
    tag = ElementTree.fromstring(odd.xml).findtext("Tag")
    assert tag == '{"a":"<\\u0000>&"}'


def state(request: RestRequest, field: str = "client_state") -> Any:
    return orjson.loads(base64.b64decode(request.json[field], validate=True))


def test_telnyx_keeps_the_state_that_the_call_came_with() -> None:
    rest = TelnyxRest(TelnyxSettings())
    said = {"params": {"order": 7}}
    call = CallRef("c", custom={"client_state": "campaign 5"})
    (end,) = rest.hangup(call, said)
    assert state(end) == {"params": {"order": "7"}, "client_state": "campaign 5"}
    (plain,) = rest.hangup(call, {})
    assert "client_state" not in plain.json
    assert plain.json["command_id"] != end.json["command_id"], "else it would be taken for done"
    (move,) = rest.transfer(CallRef("c"), "+1555", said)
    assert state(move) == state(move, "target_leg_client_state") == {"params": {"order": "7"}}


def test_telnyx_tells_whoever_has_the_call_where_nobody_is_named() -> None:
    rest = TelnyxRest(TelnyxSettings())
    (told,) = rest.transfer(CallRef("v3:c"), "", {"params": {"order": 7}})
    assert (told.method, told.path, told.needed) == (
        "PUT",
        "/v2/calls/v3%3Ac/actions/client_state_update",
        False,
    )
    assert state(told) == {"params": {"order": "7"}}
    assert rest.transfer(CallRef("v3:c"), "", {}) == []


def test_only_telnyx_calls_by_texml_go_on_at_a_page() -> None:
    rest = TelnyxRest(TelnyxSettings(continue_url="https://h/x"))
    said = {"params": {"order": 7}}
    by_texml = CallRef("v3:c", account="AC 1", custom={"callSid": "v3:sid"})
    (end,) = rest.hangup(by_texml, said)
    assert (end.method, end.path) == ("POST", "/v2/texml/Accounts/AC%201/Calls/v3%3Asid")
    assert end.form == {"Url": "https://h/x?action=hangup&order=7", "Method": "POST"}
    (on,) = rest.transfer(by_texml, "", said)
    assert on.form == {"Url": "https://h/x?action=transfer&order=7", "Method": "POST"}
    for request in (*rest.hangup(by_texml, {}), *rest.hangup(CallRef("c", account="a"), said)):
        assert request.path.endswith("/actions/hangup")


# ---- Asterisk


def ari(**over: Any) -> AsteriskAri:
    return AsteriskAri(AsteriskSettings(**{"stasis": True, **over}))


CALL = CallRef("1.2", custom={"CALLER_CHANNEL": "1.1"})


def variables(requests: Any) -> dict[str, str]:
    set_ = [one for one in requests if one.path == "/ari/channels/1.1/variable"]
    assert all(one.method == "POST" and not one.needed for one in set_)
    return {one.json["variable"]: one.json["value"] for one in set_}


def test_asterisk_is_told_before_the_caller_goes() -> None:
    said = {"params": {"order id": "7", "EVAL(x)": "${SHELL(id)},b&c", "number": "+1 555/2"}}
    for requests in (ari().hangup(CALL, said), ari().transfer(CALL, "200", said)):
        assert variables(requests) == {
            "VG_order_id": "7",
            "VG_EVAL_x": "%24%7BSHELL%28id%29%7D%2Cb%26c",
            "VG_number": "+1 555/2",
        }
        assert requests[-1].path in ("/ari/channels/1.1", *[r.path for r in requests[3:]])
        assert requests[-1].needed
    assert set(variables(ari(output_prefix="X_").hangup(CALL, {"params": {"a": 1}}))) == {"X_a"}


def test_asterisk_sets_none_where_it_would_refuse_them() -> None:
    said = {"params": {"a": "1"}}
    assert len(ari(stasis=False).hangup(CALL, said)) == 1
    assert len(ari().hangup(CallRef("1.2"), said)) == 1


@given(st.dictionaries(st.text(), st.text(max_size=2000), max_size=40))
def test_asterisk_s_variables_are_bounded_and_harmless(params: dict[str, str]) -> None:
    told = variables(ari().hangup(CALL, {"params": params}))
    assert len(told) <= MAX_VARIABLES
    for name, value in told.items():
        assert name.isidentifier()
        assert name.isascii()
        assert len(value) <= MAX_VALUE_CHARS
        assert not set(value) & set(',&"${}()[]|\\;\n')


@pytest.mark.parametrize("prefix", ["", "1", "A(", "A-B"])
def test_a_prefix_is_a_name(prefix: str) -> None:
    with pytest.raises(ValidationError):
        AsteriskSettings(output_prefix=prefix)


# ---- what comes behind a number that was dialled

DIALLED = {"params": {"PHONE_GATEWAY_TRANSFER": {"phoneNumber": "+1555"}, "order": "7"}}
AFTER = "https://flows.example.com/next?action=transferred&target=%2B1555&order=7"
ONWARD = {"continue_url": "https://flows.example.com/next"}


def test_behind_a_number_the_call_goes_on_only_with_something_to_tell() -> None:
    assert after_dialled(ONWARD["continue_url"], "+1555", DIALLED) == AFTER
    assert after_dialled(None, "+1555", DIALLED) == ""
    bare = {"params": {"PHONE_GATEWAY_TRANSFER": {"phoneNumber": "+1555"}}}
    assert after_dialled(ONWARD["continue_url"], "+1555", bare) == ""


def test_twilio_is_told_in_the_instructions_themselves() -> None:
    settings = TwilioSettings(account="AC1", auth_tokens=["t"], **ONWARD)  # type: ignore[list-item, arg-type]
    (move,) = TwilioRest(settings).transfer(CallRef("c"), "+1555", DIALLED)
    assert move.form is not None
    dialled = ElementTree.fromstring(move.form["Twiml"]).find("Dial")
    assert dialled is not None
    assert (dialled.get("action"), dialled.text) == (AFTER, "+1555")


PAGES: list[tuple[str, Callable[[RestRequest], str]]] = [
    ("signalwire", lambda request: (request.form or {})["Url"]),
    ("plivo", lambda request: str(request.json["aleg_url"])),
    ("jambonz", lambda request: str(request.json["call_hook"]["url"])),
]


def page(dialect: str, url: str) -> str:
    """What our own page at this address says, its signs unquoted."""
    entry = DIALECTS[dialect]
    platforms = PlatformsSettings.model_validate({dialect: ONWARD})
    parts = urlsplit(url)
    (webhook,) = [hook for hook in entry.webhooks if hook.pattern == parts.path]
    asked = Request(parts.path, query=parse_qs(parts.query), body=b"{}", method="POST")
    made = webhook.answer(Hook(entry.settings(platforms), asked, lambda _: ""))
    return html.unescape(made.body.decode())


@pytest.mark.parametrize(("dialect", "url_of"), PAGES)
def test_our_own_page_that_dials_says_where_the_call_goes_on(
    dialect: str, url_of: Callable[[RestRequest], str]
) -> None:
    entry = DIALECTS[dialect]
    settings = {
        **ONWARD,
        "public_origin": "https://voice.example.com",
        "account": "a",
        "api_secret": "s",
        "rest_url": "https://rest.example.com",
    }
    platforms = PlatformsSettings.model_validate({dialect: settings})
    assert entry.rest is not None
    words = entry.rest(entry.settings(platforms))
    assert words is not None
    (move,) = words.transfer(CallRef("c", account="a"), "+1555", DIALLED)
    assert f'"{AFTER}"' in page(dialect, url_of(move))
    # Without `params` the number is dialled as ever, and nobody can lead the call elsewhere.
    for query in ("target=%2B1555", "target=%2B1555&after=https://flows.example.com.evil/next"):
        said = page(dialect, f"/{dialect}/transfer?{query}")
        assert "+1555" in said
        assert "https" not in said
