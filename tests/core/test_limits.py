import pytest

from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import one_line, shorten, shown


def test_a_long_value_is_cut_and_its_length_said():
    assert shorten("abc") == "abc"
    assert (shown("abc"), shown(1.5), shown([1, "a"])) == ("'abc'", "1.5", "[1, 'a']")
    assert shorten("x" * 5000) == "x" * 80 + "... (5,000 characters)"
    assert shorten("[1, 2]", most=4) == "[1, ... (6 characters)"


def test_control_characters_and_broken_bytes_are_spelt_out():
    assert shorten("a\nb\x1b[31m\udcff\0") == "a\\nb\\x1b[31m\\udcff\\x00"


def test_a_number_that_python_does_not_print_is_described():
    assert shown(16**4000) == "(int with a number of thousands of digits)"


@pytest.mark.parametrize("text", ["a\nb\r\nc", "x" * 5000, "word " * 2000])
def test_every_error_is_one_line_that_can_be_read(text):
    line = str(UserError(f"'{text}' is wrong; leave it out"))
    assert len(line) <= 2010
    assert len(line.splitlines()) == 1
    assert line.endswith("leave it out")


def test_one_line_keeps_what_is_short():
    assert one_line("--seed 3: too small; use 4") == "--seed 3: too small; use 4"
