"""The grammar of filters, and ranges on every path against their slow, obvious definition."""

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.cluster.mapping import meta_terms, range_clause
from indexes.comparing import COMPARE, Axis, comparable, compares, iso_of, number_of, period_of
from indexes.filters import SIGNS, Condition, Filter, unknown_field
from indexes.interface import BadFilterError
from indexes.rows import Rows

DAYS = st.dates().map(str)
TIMES = st.datetimes().map(lambda t: t.isoformat(timespec="microseconds"))
ZONES = st.sampled_from(["", "Z", "+02:00", "-0530", "+14"])
WRITTEN = (
    st.integers().map(str)
    | st.floats().map(str)
    | st.integers(1, 9999).map("{:04}".format)
    | DAYS
    | DAYS.map(lambda day: day[:7])
    | st.builds("{}{}".format, TIMES, ZONES)
    | st.builds("{}T{:02}:{:02}{}".format, DAYS, st.integers(0, 25), st.integers(0, 61), ZONES)
    | st.text("0123456789-+.eTZ:", max_size=12)
)
# Few different values, so that equal values, and periods within periods, occur often.
NEAR = st.sampled_from(
    ["2021", "2020", "2021-01", "2021-01-01", "2020-12-31", "2021-12-31T23:59", "2021-12-31T23:59:59.999999Z",
     "2021-01-01T00:30+01:00", "2021.0", "-0.0", "0", "-5", "7e1", "70", "x", "", "0001-01-01", "9999", "2021-13"]
)  # fmt: skip
VALUES = WRITTEN | NEAR
RANGES = st.sampled_from(sorted(COMPARE))


@pytest.mark.parametrize(
    ("value", "sign", "bound", "holds"),
    [
        ("101", ">", "100", True), ("100", ">", "100", False), ("100.0", ">=", "1e2", True),
        ("9", "<", "10", True), (" 9 ", "<", "10", True), ("-1", "<", "-0.5", True),
        ("nine", "<", "10", False), ("nan", "<=", "10", False), ("1e999", ">", "10", False), ("true", ">", "0", False),
        ("2021-01-01", ">=", "2021-01-01", True), ("2020-12-31", ">=", "2021-01-01", False),
        # A bound covers the whole period that it names.
        ("2021-03-31T23:59:59", "<=", "2021-03-31", True), ("2021-03-31T23:59:59", ">", "2021-03-31", False),
        ("2021-04-01", ">", "2021-03", True), ("2021-03-31", "<=", "2021-03", True),
        ("2021-04-01", "<=", "2021-03", False), ("2021-12-31", "<=", "2021", True), ("2022-01-01", ">", "2021", True),
        ("2021-03", ">=", "2021-03-02", False), ("2021-01-01T10:30:59", "<=", "2021-01-01T10:30", True),
        # Instants: without a zone, UTC.
        ("2021-01-01T00:30+01:00", "<", "2021-01-01", True), ("2020-12-31T23:30Z", "<", "2021-01-01", True),
        ("2021-01-01T10:00:00.5", ">", "2021-01-01T10:00:00.25", True),
        # A year is a number and a date; two numbers are compared as numbers.
        ("2021", ">", "2020.5", True), ("2021", "<=", "2021", True), ("2021", ">", "2021", False),
        ("2021", "<", "2021-06", True), ("20210101", ">", "2021", True), ("12", "<", "2021-01-01", False),
        ("2021-02-30", ">", "2021", False), ("2021-01-01T24:00", ">", "2020", False), ("0000", "<", "2021-01", False),
        ("9999-12-31", "<=", "9999", True),
    ],
)  # fmt: skip
def test_what_compares(value: str, sign: str, bound: str, holds: bool) -> None:
    assert compares(value, sign, bound) is holds


@given(st.datetimes(), ZONES)
def test_instants_are_those_of_the_standard_library(moment: datetime.datetime, zone: str) -> None:
    text = moment.isoformat(timespec="microseconds") + zone
    zoned = datetime.datetime.fromisoformat(text)
    zoned = zoned if zoned.tzinfo else zoned.replace(tzinfo=datetime.UTC)
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    period = period_of(text)
    assert period is not None
    assert period.begin == (zoned - epoch) // datetime.timedelta(microseconds=1)
    assert period.end == period.begin + 1


@given(VALUES)
def test_a_period_begins_before_it_ends_and_days_follow_each_other(text: str) -> None:
    period = period_of(text)
    if period is None:
        return
    assert period.begin < period.end
    if len(text) == 10 and text < "9999-12-31":
        following = period_of(str(datetime.date.fromisoformat(text) + datetime.timedelta(1)))
        assert following is not None
        assert following.begin == period.end


@given(VALUES, VALUES)
def test_each_comparison_is_the_contrary_of_another(value: str, bound: str) -> None:
    comparison = [compares(value, sign, bound) for sign in (">=", "<", ">", "<=")]
    assert comparison in ([True, False, True, False], [True, False, False, True], [False, True, False, True],
                          [False] * 4)  # fmt: skip


@given(st.lists(VALUES, max_size=8), RANGES, VALUES.filter(comparable))
def test_an_axis_answers_as_the_definition(values: list[str], sign: str, bound: str) -> None:
    column: dict[str, list[int]] = {}
    for row, value in enumerate(values):
        column.setdefault(value, []).append(row)
    expected = [row for row, value in enumerate(values) if compares(value, sign, bound)]
    assert sorted(Axis(column.items()).rows(sign, bound).tolist()) == expected


def matches(clause: dict[str, Any], terms: list[str]) -> bool:
    """Evaluate a range clause as a server does, by keyword order."""
    return any(
        all(
            {"gt": term > limit, "gte": term >= limit, "lt": term < limit, "lte": term <= limit}[way]
            for way, limit in one["range"]["meta"].items()
        )
        for one in clause["bool"]["should"]
        for term in terms
    )


@given(st.lists(VALUES, max_size=3), RANGES, VALUES.filter(comparable), st.sampled_from(["f", "g", "é f"]))
def test_terms_on_a_server_answer_as_the_definition(
    values: list[str], sign: str, bound: str, field: str
) -> None:
    condition, metadata = Condition("f", (bound,), sign), {field: values, "h": "2021", "f\x1fn": "3"}
    assert matches(range_clause(condition), meta_terms(metadata)) == condition.accepts(metadata)


@given(st.text("ab=!<>|\\ \n2", max_size=12) | st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    for given_ in (text, [text], {text: text}, {"a": {text: text}}):
        try:
            parsed = Filter.parse(given_)
        except BadFilterError as error:
            assert str(error)
        else:
            assert parsed is None or parsed.accepts({"a": text}) in (True, False)


NAMES = st.text(st.characters(exclude_characters="=<>!", exclude_categories=["Zs", "Cc", "Cs"]), min_size=1)


@given(NAMES, st.sampled_from(SIGNS), st.lists(NAMES, min_size=1, max_size=3), NEAR.filter(comparable))
def test_what_is_written_is_read_back(field: str, sign: str, values: list[str], bound: str) -> None:
    values = [bound] if sign in COMPARE else values
    text = "|".join(value.replace("|", "\\|") for value in values)
    if any(value.endswith("\\") for value in values):  # before a bar it would be read as its escape
        return
    expected = Filter((Condition(field, tuple(values), sign),))
    assert Filter.parse(f"{field} {sign} {text}") == expected
    assert Filter.parse({field: {sign: values}}) == expected


def test_strings_lists_and_mappings_say_the_same() -> None:
    expected = Filter(
        (
            Condition("lang", ("en", "de")), Condition("kind", ("retweet",), "!="),
            Condition("date", ("2021-01-31",), ">="), Condition("likes", ("100",), ">"),
        )
    )  # fmt: skip
    texts = ["lang=en|de", "kind != retweet", "date>=2021-01-31", "likes>100"]
    mapping = {"lang": ["en", "de"], "kind": {"!=": "retweet"}, "date": {">=": datetime.date(2021, 1, 31)},
               "likes": {">": 100}}  # fmt: skip
    assert Filter.parse(texts) == Filter.parse("\n".join([*texts, ""])) == Filter.parse(mapping) == expected
    assert Filter.parse(["lang=en", *texts[1:], "lang=de"]) == expected
    assert Filter.parse(expected) is expected
    assert Filter.parse("") is None
    assert Filter.parse({"a": "x|y"}) == Filter.parse([r"a=x\|y"]) == Filter((Condition("a", ("x|y",)),))
    assert expected.accepts({"lang": "de", "date": "2021-02", "likes": 101})
    assert not expected.accepts({"lang": "de", "date": "2021-02", "likes": 100})
    assert not expected.accepts({"lang": "de", "date": "2021-02", "likes": 101, "kind": ["x", "retweet"]})


def nested(depth: int) -> Any:
    """Return a list in a list, nested to a depth."""
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("likes", "write field=value"), ("=x", "write field=value"), ([3], "write field=value"),
        ("likes>many", "cannot compare 'likes' with 'many'"), ("likes>1|2", "cannot compare 'likes' with '1|2'"),
        ({"likes": {">": [1, 2]}}, "cannot compare 'likes'"), ({"a": {"~": 1}}, "expected one of"),
        ({"a": [["x"]]}, "without nested lists"), ({"a": {"=": {"=": "x"}}}, "without nested lists"),
        ({"a": nested(5000)}, "without nested lists"),
        ("date<=2021-02-30", "ISO 8601 date"), ("a\x1fb>3", "cannot have a range"), ("n" * 101 + ">3", "cannot have a"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(where: Any, message: str) -> None:
    with pytest.raises(BadFilterError, match=message.replace("|", r"\|")):
        Filter.parse(where)


def test_an_unknown_field_names_the_near_miss() -> None:
    fields = ("Date", "lang", "likes")
    assert "did you mean 'Date'?" in str(unknown_field("dat", fields))
    assert "did you mean 'lang'?" in str(unknown_field("LANG", fields))
    assert "the index has 'Date', 'lang', 'likes'" in str(unknown_field("colour", fields))
    assert "have no metadata" in str(unknown_field("lang", ()))


def test_numbers_are_plain() -> None:
    assert [number_of(text) for text in ("1_000", "٣", "0x1", "inf", "1,5", "", ".", "-.5e1")] == [
        None
    ] * 7 + [-5.0]


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("31.12.2025", "2025-12-31"), ("1. 2. 2025", "2025-02-01"), ("12/31/2025", "2025-12-31"),
        ("31/12/2025", "2025-12-31"), ("2025/12/31", "2025-12-31"), ("2 March 2022", "2022-03-02"),
        ("2nd Mar. 2022", "2022-03-02"), ("March 2, 2022", "2022-03-02"), ("31.13.2025", ""),
        ("2 Foo 2022", ""), ("soon", ""), ("", ""),
    ],
)  # fmt: skip
def test_dates_that_are_written_otherwise_are_advised_about(text: str, iso: str) -> None:
    assert iso_of(text) == iso


def test_a_bound_that_is_written_otherwise_is_refused_with_its_iso_form() -> None:
    with pytest.raises(BadFilterError, match=r"ISO 8601 date \(date>=2025-12-31\)"):
        Filter.parse("date>=31.12.2025")


def rows_of(*values: Any) -> Rows:
    rows = Rows()
    rows.append([f"d{n}" for n in range(len(values))], [{"date": value} for value in values])
    return rows


def misfits(rows: Rows, where: str) -> tuple[str, ...]:
    parsed = Filter.parse(where)
    assert parsed is not None
    return rows.misfits(parsed)


def test_values_that_no_range_can_fit_are_named() -> None:
    rows = rows_of("31.12.2025", "2 March 2022", "31.12.2025", "2021-01-01")
    (said,) = misfits(rows, "date>=2021")
    assert said.startswith(
        "3 of 4 values of 'date' cannot be compared with '2021' and never match, such as '31.12.2025'"
    )
    assert "YYYY-MM-DD" in said and "2025-12-31" in said
    assert misfits(rows, "date=31.12.2025") == ()
    assert misfits(rows_of("2021-01-01", "2022"), "date>=2021-05") == ()
    (said,) = misfits(rows_of("soon"), "date<2021")
    assert "'soon'" in said and "here" not in said


def test_a_bound_of_the_other_kind_is_refused() -> None:
    with pytest.raises(
        BadFilterError, match="holds dates, such as '2021-01-01': compare it with an ISO 8601 date"
    ):
        misfits(rows_of("2021-01-01"), "date>=20210131")
    with pytest.raises(BadFilterError, match="holds numbers, such as '7': compare it with a number"):
        misfits(rows_of(7), "date>=2021-01-31")
    (said,) = misfits(rows_of(7, "2021-01-01"), "date>=2021-01-31")
    assert said.startswith("1 of 2 values")
