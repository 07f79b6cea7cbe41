"""Plain asserts of the judge explain themselves."""

import pytest

pytest.register_assert_rewrite("tests.call.rules.outcome")
