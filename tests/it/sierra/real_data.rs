//! Answers that real Sierra servers gave, decoded whole.

use std::path::PathBuf;

use sierra_sync::record::{Bib, Entry, Fields, Item, Live, RecordNumber, Stream, Tombstone};
use sierra_sync::sierra::{decode_entry, decode_page};

/// The text of a recorded answer. The recordings stand beside the project and are not part of it.
#[expect(clippy::print_stderr, reason = "a skipped test is to be seen")]
pub(super) fn recorded(name: &str) -> Option<String> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/real/sierra"));
    if !folder.is_dir() {
        eprintln!("skipped: no recorded answers in {}", folder.display());
        return None;
    }
    Some(std::fs::read_to_string(folder.join(name)).expect("a recorded answer"))
}

fn entries(stream: Stream, name: &str) -> Option<Vec<Entry>> {
    let page = decode_page(stream, recorded(name)?.as_bytes()).expect("a page");
    assert_eq!(page.replaced_surrogates, 0, "{name}");
    Some(page.entries.into_iter().map(|entry| entry.expect("every entry is read")).collect())
}

fn bibs(entries: &[Entry]) -> Vec<&Bib> {
    entries
        .iter()
        .filter_map(|entry| if let Entry::Live(Live::Bib(bib)) = entry { Some(&**bib) } else { None })
        .collect()
}

fn items(entries: &[Entry]) -> Vec<&Item> {
    let item = |entry| if let &Entry::Live(Live::Item(ref item)) = entry { Some(&**item) } else { None };
    entries.iter().filter_map(item).collect()
}

fn has_fixed(fields: &Fields, number: &str) -> bool {
    let raw = fields.get("fixedFields").expect("fixed fields");
    let fixed: serde_json::Value = serde_json::from_str(raw.get()).expect("JSON");
    fixed.get(number).is_some()
}

fn is_rising(entries: &[Entry]) -> bool {
    entries.is_sorted_by(|earlier, later| earlier.id() < later.id())
}

#[test]
fn bibs_of_version_3_with_default_fields_are_read() {
    let Some(entries) = entries(Stream::Bibs, "bibs-v3-default.json") else { return };
    assert!(entries.len() == 50 && is_rising(&entries));
    let stone = Tombstone { id: RecordNumber::new(1_000_001), deleted_on: "2005-01-27".parse().ok(), updated: None };
    assert!(matches!(&entries[0], Entry::Tombstone(first) if *first == stone));
    let bibs = bibs(&entries);
    assert!(bibs.iter().all(|bib| bib.updated.is_some() && bib.var_fields.is_none() && bib.marc.is_none()));
    assert!(bibs[1].fields.get("title").expect("a title").get().contains("chirurgische Propädeutik"));
}

#[test]
fn bibs_of_version_6_bring_marc_beside_their_fields() {
    let Some(slice) = entries(Stream::Bibs, "bibs-v6-slice.json") else { return };
    assert!(bibs(&slice).len() == 3 && bibs(&slice).iter().all(|bib| bib.marc.is_some()));
    let Some(full) = entries(Stream::Bibs, "bibs-v6-full.json") else { return };
    let full = bibs(&full);
    assert!(full.len() == 6 && full.iter().all(|bib| bib.marc.is_some() && has_fixed(&bib.fields, "24")));
    // BR-048: one of them came with `marc` and without `varFields`, which is not the same as with none.
    let bare: Vec<u64> = full.iter().filter(|bib| bib.var_fields.is_none()).map(|bib| bib.id.value()).collect();
    assert_eq!(bare, [3]);
    for fields in full.iter().filter_map(|bib| bib.var_fields.as_ref()) {
        assert!(fields.iter().any(|field| field.field_tag == "_" && field.content.is_some()));
        assert!(fields.iter().any(|field| field.marc_tag.as_deref() == Some("245") && !field.subfields.is_empty()));
    }
}

#[test]
fn items_of_version_3_keep_their_links_and_fixed_fields() {
    let Some(default) = entries(Stream::Items, "items-v3-default.json") else { return };
    assert_eq!((items(&default).len(), default.len(), is_rising(&default)), (7, 7, true));
    assert_eq!(items(&default)[0].bib_ids, [RecordNumber::new(2_043_144)]);
    let Some(full) = entries(Stream::Items, "items-v3-fixed-and-var-fields.json") else { return };
    assert!(full.len() == 50 && is_rising(&full));
    assert!(items(&full).iter().all(|item| !item.bib_ids.is_empty() && has_fixed(&item.fields, "61")));
    assert!(items(&full).iter().any(|item| !item.var_fields.is_empty()));
}

#[test]
fn a_bare_item_of_version_6_is_read() {
    let Some(text) = recorded("item-v6-default.json") else { return };
    let Ok(Entry::Live(Live::Item(item))) = decode_entry(Stream::Items, &text) else { panic!("no item") };
    assert_eq!((item.id, item.location.as_deref()), (RecordNumber::new(38_999_500), Some("fta0f")));
    assert_eq!(item.bib_ids, [RecordNumber::new(21_759_599)]);
}
