use super::*;

struct Fields;

impl Row for Fields {
    fn property(&self, name: &str) -> Option<Datum> {
        match name {
            "n" => Some(Datum::Number(7.0)),
            "s" => Some(Datum::text("Hello, World")),
            "d" => Some(Datum::text("12.5")),
            "null" => Some(Datum::Null),
            _ => None,
        }
    }
}

fn check(expression: &str, expected: &str) {
    let value = Expression::parse(expression.as_bytes()).and_then(|expression| expression.value(&Fields));
    let shown = match value {
        Ok(Datum::Null) => "NULL".to_owned(),
        Ok(Datum::List(list)) => {
            list.iter().map(|item| String::from_utf8_lossy(&item.bytes()).into_owned()).collect::<Vec<_>>().join("|")
        }
        Ok(datum) => String::from_utf8_lossy(&datum.bytes()).into_owned(),
        Err(error) => format!("error: {error}"),
    };
    assert_eq!(shown, expected, "{expression}");
}

#[test]
fn operators_bind_as_usual() {
    check("1 + 2 * 3", "7");
    check("(1 + 2) * 3", "9");
    check("2 ^ 3 ^ 2", "512");
    check("7 % 4 - 1", "2");
    check("-9223372036854775808 % -1", "0");
    check("1 % 0", "nan");
    check("-5 + 2", "-3");
    check("10/4", "2.5");
    check("@n - 1", "6");
    check("@n -1", "6");
    check("@d * 2", "25");
    check("1 == 1 && 2 < 1 || 3 >= 3", "1");
    check("!(1 == 1)", "0");
    check("!1 == 2", "1");
    check("'a' < 'b'", "1");
    check("@d == 12.5", "1");
    check("@s == 'Hello, World'", "1");
    check("@null == NULL", "1");
    check("1/3", "0.333333333333");
    check("1e3", "1000");
    check("inf > 5", "1");
}

#[test]
fn errors_are_clear() {
    check("1 +", "error: Syntax error at offset 3");
    check("1 2", "error: Syntax error at offset 2");
    check("(1", "error: Syntax error at offset 2");
    check("1 < 2 < 3", "error: Syntax error at offset 6");
    check("'open", "error: Syntax error at offset 0");
    check("nope(1)", "error: Unknown function name 'nope'");
    check("nope", "error: Unknown symbol 'nope'");
    check("floor(1, 2)", "error: Invalid number of arguments for floor");
    check("@s + 1", "error: Could not convert value to a number");
    check("upper()", "error: Invalid arguments for function 'upper'");
    check("bad word", "error: Syntax error at offset 4");
    check("@gone", "error: gone: has no value, consider using EXISTS if applicable");
    for hostile in ["(", "!", "floor(", "1+(", "1^"] {
        let text = hostile.repeat(100_000);
        assert_eq!(Expression::parse(text.as_bytes()), Err(ExpressionError::TooDeep), "{hostile}");
    }
    assert_eq!(Expression::parse("1+".repeat(100_000).as_bytes()), Err(ExpressionError::TooDeep));
}

#[test]
fn functions_give_what_redisearch_gives() {
    check("floor(2.7) + ceil(2.1) + abs(-1)", "6");
    check("sqrt(16) + log2(8) + exp(0)", "8");
    check("lower(@s)", "hello, world");
    check("UPPER('abc')", "ABC");
    check("lower(5)", "NULL");
    check("substr(@s, 0, 5)", "Hello");
    check("substr(@s, -5, 3)", "Wor");
    check("substr(@s, 7, -1)", "Worl");
    check("substr(@s, 50, 5)", "");
    check("substr(@s, -12, 5)", "Hello");
    check("substr(@s, -13, 5)", "");
    check("substr(@s, -1000, -1)", "");
    let wrong = "VALIDATE_ARG__TYPE(v, RSValue_Number) was false.";
    check("substr('a', '0', 1)", &format!("error: Invalid type (3) for argument 1 in function 'substr'. {wrong}"));
    let wrong = "VALIDATE_ARG__STRING(v, 0) was false.";
    check("parsetime(1, 2)", &format!("error: Invalid type (1) for argument 0 in function 'parsetime'. {wrong}"));
    check("matched_terms()", "NULL");
    check("matched_terms(1)", "NULL");
    check("format('%s-%s%%', @n, @s)", "7-Hello, World%");
    check("format('%d', 1)", "error: Unknown format specifier passed");
    check("format('%s')", "error: Not enough arguments for format");
    check("split(@s)", "Hello|World");
    check("split('a;b, c', ';,', ' ')", "a|b|c");
    check("to_number(@d) + 1", "13.5");
    check("to_number('x')", "error: to_number: cannot convert string 'x'");
    check("to_str(1.5)", "1.5");
    check("exists(@gone)", "0");
    check("exists(@n) && !exists(@gone)", "1");
    check("case(@n > 5, 'big', @gone)", "big");
    check("startswith(@s, 'Hell')", "1");
    check("contains('banana', 'ana')", "2");
    check("contains('abc', '')", "4");
    check("strlen(@s)", "12");
    check("geodistance('13.361389,38.115556', '15.087269,37.502669')", "166274.26");
    check("geodistance(13.361389, 38.115556, '15.087269,37.502669')", "166274.26");
    check("geodistance('x', 'y')", "nan");
}

#[test]
fn times_are_of_the_gregorian_calendar() {
    // 29 February 2024, 12:34:56 UTC.
    check("timefmt(1709210096)", "2024-02-29T12:34:56Z");
    check("timefmt(1709210096, '%A %j %I:%M %p %y')", "Thursday 060 12:34 PM 24");
    check("timefmt(1709210096, '%Q')", "NULL");
    check("parsetime('2024-02-29T12:34:56Z', '%FT%TZ')", "1709210096");
    check("parsetime('29 Feb 2024', '%d %b %Y')", "1709164800");
    check("parsetime('nope', '%d')", "NULL");
    check("hour(1709210096)", "1709208000");
    check("minute(1709210096)", "1709210040");
    check("day(1709210096)", "1709164800");
    check("month(1709210096)", "1706745600");
    check("year(1709210096) * 100 + monthofyear(1709210096)", "202401");
    check("dayofmonth(1709210096)", "29");
    check("dayofweek(1709210096)", "4");
    check("dayofyear(1709210096)", "59");
    check("year(-5)", "NULL");
    check("day('x')", "NULL");
}

#[test]
fn properties_are_listed() {
    let expression = Expression::parse(b"floor(@b) + @a / @b || exists(@c)").expect("valid");
    assert_eq!(expression.properties(), ["b", "a", "c"]);
}
