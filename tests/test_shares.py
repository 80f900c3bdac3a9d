"""Shares of a whole on the command line: with `%`, and as a number alone."""

import pytest

from surgeon.cli.console import UsageError
from surgeon.cli.shares import percent_of, share_of


def test_a_share_of_files_is_read_as_people_write_it() -> None:
    assert [percent_of(text) for text in ("80%", "80", "0.8", "1.0", "1%", "0", "62.5", "100")] == [
        *(80, 80, 80, 100, 1, 0, 62.5, 100)
    ]


@pytest.mark.parametrize("text", ["1", "101", "101%", "most", "", "-1", "nan", "8e9"])
def test_what_is_no_share_of_files_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a share of the files"):
        percent_of(text)


def test_a_tolerance_is_read_as_people_write_it() -> None:
    given = ("5%", "0.05", "1", ".5", "1e-4", "0", "1E-2%", None)
    assert [share_of(text) for text in given] == [0.05, 0.05, 1, 0.5, 1e-4, 0, 1e-4, None]


@pytest.mark.parametrize("text", ["5", "150%", "1e5"])
def test_a_tolerance_of_more_than_the_whole_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="more than the whole of an output's spread"):
        share_of(text)


@pytest.mark.parametrize("text", ["-1", "nan", "little", "1e", "%"])
def test_what_is_no_tolerance_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a share of an output's spread"):
        share_of(text)
