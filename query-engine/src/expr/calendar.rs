//! Dates of the Gregorian calendar in UTC, and C's `strftime` and `strptime` for them.

/// Behind the year 9999; later dates have no four-digit years.
pub(super) const END: f64 = 253_402_300_800.0;

const DAY: i64 = 86_400;

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date {
    pub(super) year: i64,
    /// 1 to 12.
    pub(super) month: u32,
    /// 1 to 31.
    pub(super) day: u32,
}

impl Date {
    /// The day of a point of time, in seconds since 1970.
    pub(super) fn of(time: f64) -> Self {
        Self::of_days((time as i64).div_euclid(DAY))
    }

    /// Howard Hinnant's algorithm: years begin in March, in eras of 400 years.
    fn of_days(days: i64) -> Self {
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = (day_of_year - (153 * month + 2) / 5 + 1) as u32;
        let month = if month < 10 { month + 3 } else { month - 9 } as u32;
        Self { year: year_of_era + era * 400 + i64::from(month <= 2), month, day }
    }

    /// Days since 1970.
    fn days(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let month = i64::from(if self.month > 2 { self.month - 3 } else { self.month + 9 });
        let day_of_year = (153 * month + 2) / 5 + i64::from(self.day) - 1;
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
    }

    /// The beginning of its month, in seconds since 1970.
    pub(super) fn month_start(self) -> f64 {
        (Self { day: 1, ..self }.days() * DAY) as f64
    }

    /// 0 is Sunday.
    pub(super) fn weekday(self) -> u32 {
        (self.days() + 4).rem_euclid(7) as u32
    }

    /// From 0 on.
    pub(super) fn day_of_year(self) -> u32 {
        (self.days() - Self { month: 1, day: 1, ..self }.days()) as u32
    }
}

/// The longest formatted time, RediSearch's.
const MAX_FORMATTED: usize = 1023;

/// `strftime`; `None` for directives that it does not know, and for texts that are empty or too long.
pub(super) fn format(time: f64, format: &[u8]) -> Option<Vec<u8>> {
    let mut out = String::new();
    let text = std::str::from_utf8(format).ok()?;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter == '%' {
            directive(&mut out, time, letters.next()?)?
        } else {
            out.push(letter)
        }
        if out.len() > MAX_FORMATTED {
            return None;
        }
    }
    (!out.is_empty()).then(|| out.into_bytes())
}

fn directive(out: &mut String, time: f64, letter: char) -> Option<()> {
    let (date, seconds) = (Date::of(time), (time as i64).rem_euclid(DAY));
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let (weekday, month) = (WEEKDAYS[date.weekday() as usize], MONTHS[date.month as usize - 1]);
    let text = match letter {
        'Y' => format!("{}", date.year),
        'C' => format!("{:02}", date.year.div_euclid(100)),
        'y' => format!("{:02}", date.year.rem_euclid(100)),
        'm' => format!("{:02}", date.month),
        'd' => format!("{:02}", date.day),
        'e' => format!("{:2}", date.day),
        'H' => format!("{hour:02}"),
        'I' => format!("{:02}", (hour + 11) % 12 + 1),
        'M' => format!("{minute:02}"),
        'S' => format!("{second:02}"),
        'p' => (if hour < 12 { "AM" } else { "PM" }).to_owned(),
        'j' => format!("{:03}", date.day_of_year() + 1),
        'w' => format!("{}", date.weekday()),
        'u' => format!("{}", (date.weekday() + 6) % 7 + 1),
        'a' => weekday[..3].to_owned(),
        'A' => weekday.to_owned(),
        'b' | 'h' => month[..3].to_owned(),
        'B' => month.to_owned(),
        's' => format!("{}", time as i64),
        'Z' => "GMT".to_owned(),
        'z' => "+0000".to_owned(),
        'n' => "\n".to_owned(),
        't' => "\t".to_owned(),
        '%' => "%".to_owned(),
        'F' => format!("{}-{:02}-{:02}", date.year, date.month, date.day),
        'T' => format!("{hour:02}:{minute:02}:{second:02}"),
        'R' => format!("{hour:02}:{minute:02}"),
        'D' | 'x' => format!("{:02}/{:02}/{:02}", date.month, date.day, date.year.rem_euclid(100)),
        'X' => format!("{hour:02}:{minute:02}:{second:02}"),
        'c' => {
            format!("{} {} {:2} {hour:02}:{minute:02}:{second:02} {}", &weekday[..3], &month[..3], date.day, date.year)
        }
        _ => return None,
    };
    out.push_str(&text);
    Some(())
}

/// The fields that `strptime` has read so far.
struct Read {
    date: Date,
    hour: i64,
    minute: i64,
    second: i64,
    is_afternoon: Option<bool>,
    absolute: Option<i64>,
}

/// `strptime`, in seconds since 1970. A text may go on behind the format.
pub(super) fn parse(text: &[u8], format: &[u8]) -> Option<f64> {
    let (mut text, format) = (std::str::from_utf8(text).ok()?, std::str::from_utf8(format).ok()?);
    let date = Date { year: 1900, month: 1, day: 1 };
    let mut read = Read { date, hour: 0, minute: 0, second: 0, is_afternoon: None, absolute: None };
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter.is_whitespace() {
            text = text.trim_start();
        } else if letter == '%' {
            read_directive(&mut read, &mut text, letters.next()?)?;
        } else {
            text = text.strip_prefix(letter)?;
        }
    }
    let hour = match read.is_afternoon {
        Some(is_afternoon) => read.hour % 12 + 12 * i64::from(is_afternoon),
        None => read.hour,
    };
    let seconds = read.date.days() * DAY + hour * 3600 + read.minute * 60 + read.second;
    Some(read.absolute.unwrap_or(seconds) as f64)
}

fn read_directive(read: &mut Read, text: &mut &str, letter: char) -> Option<()> {
    match letter {
        'Y' => read.date.year = digits(text, 4, 0..=9999)?,
        'y' => {
            let short = digits(text, 2, 0..=99)?;
            read.date.year = short + if short < 69 { 2000 } else { 1900 };
        }
        'm' => read.date.month = digits(text, 2, 1..=12)? as u32,
        'd' | 'e' => read.date.day = digits(text, 2, 1..=31)? as u32,
        'H' => read.hour = digits(text, 2, 0..=23)?,
        'I' => read.hour = digits(text, 2, 1..=12)?,
        'M' => read.minute = digits(text, 2, 0..=59)?,
        'S' => read.second = digits(text, 2, 0..=61)?,
        's' => read.absolute = Some(digits(text, 12, 0..=END as i64)?),
        'p' => read.is_afternoon = Some(named(text, &["AM", "PM"])? == 1),
        'a' | 'A' => {
            named(text, &WEEKDAYS)?;
        }
        'b' | 'B' | 'h' => read.date.month = named(text, &MONTHS)? as u32 + 1,
        'F' => each(read, text, "%Y-%m-%d")?,
        'T' => each(read, text, "%H:%M:%S")?,
        'R' => each(read, text, "%H:%M")?,
        'D' => each(read, text, "%m/%d/%y")?,
        'n' | 't' => *text = text.trim_start(),
        '%' => *text = text.strip_prefix('%')?,
        'Z' => *text = text.trim_start_matches(|letter: char| letter.is_ascii_alphabetic()),
        _ => return None,
    }
    Some(())
}

fn each(read: &mut Read, text: &mut &str, format: &str) -> Option<()> {
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter == '%' { read_directive(read, text, letters.next()?)? } else { *text = text.strip_prefix(letter)? }
    }
    Some(())
}

fn digits(text: &mut &str, most: usize, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
    *text = text.trim_start();
    let length = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(length);
    *text = rest;
    number.parse().ok().filter(|number| range.contains(number))
}

/// The name at the beginning, whole or by its first three letters.
fn named(text: &mut &str, names: &[&str]) -> Option<usize> {
    let begins = |name: &str| text.get(..name.len()).is_some_and(|part| part.eq_ignore_ascii_case(name));
    let at = names.iter().position(|name| begins(&name[..name.len().min(3)]))?;
    let length = if begins(names[at]) { names[at].len() } else { names[at].len().min(3) };
    *text = &text[length..];
    Some(at)
}
