//! Properties of arbitrary texts.

use proptest::prelude::*;

use super::*;

/// Texts that resemble a file.
fn nearly() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        "\\[(server|tls|workers|modules|modules.a|python.a|users.a|everyone|audit|results)\\]\n",
        "(name|port|addresses|python|files|cores|calendar|functions|modules|rate|bytes|size|keep) = [0-9\\[\\]'\"a-c.:,{}=-]{0,12}\n",
        Just("calendar = [{ hours = '20-06', workers = 1 }]\n".to_owned()),
        "\\PC{0,20}",
    ];
    prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_is_a_panic(text in "\\PC{0,200}") {
        let _ = read(&text, "file", &defaults()).map_err(|problems| problems.to_string());
    }

    #[test]
    fn no_text_that_is_nearly_a_file_is_a_panic(text in nearly()) {
        if let Err(problems) = read(&text, "file", &defaults()) {
            prop_assert!(!problems.listed.is_empty());
            prop_assert!(problems.to_string().lines().count() >= problems.listed.len());
        }
    }

    #[test]
    fn a_period_has_as_many_minutes_as_its_hours(
        from in 0..1440_u32, length in 1..1440_u32, day in 0..7_usize,
    ) {
        let until = (from + length) % 1440;
        let time = |minute: u32| format!("{}:{:02}", minute / 60, minute % 60);
        let days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"][day];
        let hours = format!("{}-{}", time(from), time(until));
        let calendar = periods(&format!("[{{ hours = '{hours}', days = '{days}', workers = 1 }}]"));
        let week = std::iter::successors(Some(Weekday::Monday), |day| Some(day.next())).take(7);
        let minutes = week.flat_map(|day| (0..1440).map(move |minute| (day, minute)));
        let within = minutes.filter(|(day, minute)| calendar[0].contains(*day, *minute)).count();
        prop_assert_eq!(within, length as usize);
    }
}
