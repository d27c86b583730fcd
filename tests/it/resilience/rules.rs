//! Keeps `docs/rules.md` honest: every rule has a row, and nobody cites a test that is not there.

use std::collections::BTreeSet;
use std::path::Path;

const PAGE: &str = include_str!("../../../docs/rules.md");

#[test]
fn every_rule_has_exactly_one_row() {
    let families = [('A', 19), ('B', 12), ('C', 10), ('D', 5)];
    let expected: BTreeSet<String> =
        families.iter().flat_map(|(family, last)| (1..=*last).map(move |number| format!("{family}{number}"))).collect();
    let rows: Vec<String> = rows().map(|(id, _)| id.to_owned()).collect();
    assert_eq!(rows.iter().cloned().collect::<BTreeSet<_>>(), expected);
    assert_eq!(rows.len(), expected.len(), "a rule has two rows");
}

#[test]
fn every_test_that_is_named_exists() {
    let invariants = table().filter(|(id, _)| id.ends_with("-1") || id.ends_with("-2"));
    for (id, tests) in rows().chain(invariants) {
        let named: Vec<&str> = tests.split(',').map(|test| test.trim().trim_matches('`')).collect();
        for reference in named {
            let (file, test) = reference.split_once('#').unwrap_or_else(|| panic!("{id}: {reference} is no file#test"));
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
            let source = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{id}: {file}: {error}"));
            assert!(is_test(&source, test), "{id}: {file} has no test called {test}");
        }
    }
}

/// The id and the tests of each row of a rule.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_number = |id: &str| id.get(1..).is_some_and(|number| number.parse::<u32>().is_ok());
    table().filter(move |(id, _)| id.starts_with(['A', 'B', 'C', 'D']) && is_number(id))
}

/// The first and the last cell of each row.
fn table() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGE.lines().filter_map(|line| {
        let mut cells = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim);
        Some((cells.next()?, cells.next_back()?))
    })
}

/// A function of that name under a test attribute.
fn is_test(source: &str, name: &str) -> bool {
    let mut lines = source.lines().map(str::trim).collect::<Vec<_>>().into_iter().rev();
    let head = format!("fn {name}(");
    lines.by_ref().any(|line| line.contains(&head))
        && lines
            .take_while(|line| line.starts_with("#["))
            .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}
