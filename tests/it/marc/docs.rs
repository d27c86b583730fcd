//! The documentation says what the code does.

use sierra_sync::marc::LossKind;

#[test]
fn the_table_of_losses_lists_exactly_the_kinds_there_are() {
    let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/marc.md"));
    let table = page.split("## Losses").nth(1).expect("the section is there");
    let listed: Vec<&str> =
        table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(kind, _)| kind)).collect();
    let kinds: Vec<&str> = LossKind::ALL.into_iter().map(LossKind::name).collect();
    assert_eq!(listed, kinds);
}
