"""The count of calls is exact."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import AdmissionError
from gateway.server.admission import Admission, Slot


def refused(admission: Admission, source: str) -> str:
    with pytest.raises(AdmissionError) as caught:
        admission.enter(source)
    assert (caught.value.status, caught.value.retry_after_s) == (503, 7)
    return caught.value.code


def test_limits_in_all_and_for_each_source() -> None:
    admission = Admission(3, 2, 7)
    slots = [admission.enter("a"), admission.enter("a")]
    assert refused(admission, "a") == "admission.source"
    slots.append(admission.enter("b"))
    assert refused(admission, "c") == "admission.full"
    slots[0].release()
    slots[0].release()
    assert admission.active == 2
    admission.enter("a")


def test_a_draining_server_takes_no_more() -> None:
    admission = Admission(3, 2, 7)
    slot = admission.enter("a")
    admission.drain()
    assert refused(admission, "b") == "admission.draining"
    slot.release()
    assert admission.active == 0


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc")), max_size=60))
def test_the_count_is_the_number_of_open_slots(steps: list[tuple[bool, str]]) -> None:
    admission = Admission(5, 3, 7)
    held: list[Slot] = []
    for enters, source in steps:
        if enters:
            try:
                held.append(admission.enter(source))
            except AdmissionError:
                assert len(held) == 5 or [s.source for s in held].count(source) == 3
        elif held:
            held.pop().release()
        assert admission.active == len(held)
    for slot in held:
        slot.release()
    assert admission.active == 0
    assert not admission._by_source
