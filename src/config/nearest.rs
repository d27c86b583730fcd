//! "Did you mean": the known name that a person most likely meant.

/// The one of `names` that is nearest to `word`, when it is near enough to be worth saying.
pub(crate) fn nearest<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let distance = |name: &str| strsim::damerau_levenshtein(&word.to_lowercase(), &name.to_lowercase());
    let scored = names.into_iter().map(|name| (distance(name), name));
    let (distance, name) = scored.min()?;
    let longest = word.chars().count().max(name.chars().count());
    (distance * 5 <= longest * 2).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_pen_are_named_and_strangers_are_not() {
        let names = ["interval", "deleted_interval", "overlap", "settle"];
        assert_eq!(nearest("intervall", names), Some("interval"));
        assert_eq!(nearest("Overlap", names), Some("overlap"));
        assert_eq!(nearest("voerlap", names), Some("overlap"));
        assert_eq!(nearest("colour", names), None);
        assert_eq!(nearest("interval", []), None);
    }
}
