//! What holds for any record and any input.

use proptest::prelude::*;
use sierra_sync::marc::{
    Format, LossKind, MarcSettings, OnIllegal, ReadRecord, Record, Writer, from_sierra, iso2709, marc_json, marcxml,
};
use sierra_sync::record::RecordNumber;

use super::{strategies, strict_xml};

fn write(format: Format, records: &[Record]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), format);
    for record in records {
        writer.write(record).expect("small records fit every form");
    }
    writer.finish().expect("memory does not fail")
}

fn read(format: Format, bytes: &[u8]) -> Vec<Record> {
    fn all(mut reader: impl ReadRecord) -> Vec<Record> {
        let mut records = Vec::new();
        loop {
            let mut record = Record::default();
            if !reader.read_into(&mut record).expect("what was written can be read") {
                return records;
            }
            // U+FFFD is legal and kept, and a record may have no field, but both are always mentioned.
            let losses = reader.take_losses();
            let is_known = |kind| matches!(kind, LossKind::TextDamaged | LossKind::NoMarcFields);
            assert!(losses.iter().all(|loss| is_known(loss.kind)), "{losses:?}");
            records.push(record);
        }
    }
    match format {
        Format::Iso2709 => all(iso2709::Reader::new(bytes, OnIllegal::Quarantine)),
        Format::MarcXml => all(marcxml::Reader::new(bytes, OnIllegal::Quarantine)),
        Format::MarcJson => all(marc_json::Reader::new(bytes, OnIllegal::Quarantine)),
    }
}

proptest! {
    #[test]
    fn any_valid_record_round_trips_through_every_form(records in prop::collection::vec(strategies::record(), 1..4)) {
        for format in Format::ALL {
            prop_assert_eq!(&read(format, &write(format, &records)), &records, "{:?}", format);
        }
    }

    #[test]
    fn a_chain_through_all_forms_ends_where_it_began(record in strategies::record()) {
        let mut current = vec![record.clone()];
        for format in [Format::MarcXml, Format::Iso2709, Format::MarcJson, Format::Iso2709, Format::MarcXml] {
            current = read(format, &write(format, &current));
        }
        prop_assert_eq!(current, vec![record]);
    }

    #[test]
    fn marcxml_of_any_valid_record_is_strict_xml(record in strategies::record()) {
        let document = write(Format::MarcXml, std::slice::from_ref(&record));
        prop_assert_eq!(strict_xml::count_records(&document), Ok(1));
        prop_assert_eq!(strict_xml::count_records(marcxml::to_string(&record).as_bytes()), Ok(1));
    }

    #[test]
    fn marc_json_of_any_valid_record_is_json(record in strategies::record()) {
        prop_assert!(serde_json::from_str::<serde_json::Value>(&marc_json::to_string(&record)).is_ok());
    }

    /// BR-083, BR-087.
    #[test]
    fn any_soup_of_var_fields_gives_strict_xml(fields in strategies::soup(), replace in any::<bool>()) {
        let on_illegal = if replace { OnIllegal::Replace } else { OnIllegal::Drop };
        let settings = MarcSettings { on_illegal, ..MarcSettings::default() };
        let (record, losses) = from_sierra(RecordNumber::new(1), &fields, &settings).expect("nothing to set aside");
        let xml = marcxml::to_string(&record);
        prop_assert_eq!(strict_xml::count_records(xml.as_bytes()), Ok(1));
        prop_assert_eq!(read(Format::MarcXml, xml.as_bytes()), vec![record.clone()]);
        prop_assert_eq!(read(Format::MarcJson, marc_json::to_string(&record).as_bytes()), vec![record]);
        for loss in losses {
            prop_assert!(loss.detail.len() <= 240, "{:?}", loss);
        }
    }

    /// BR-083: quarantine is the only reason for a failure, and only with a reason.
    #[test]
    fn quarantine_gives_up_exactly_the_records_that_drop_would_change(fields in strategies::soup()) {
        let convert = |on_illegal| {
            from_sierra(RecordNumber::new(1), &fields, &MarcSettings { on_illegal, ..MarcSettings::default() })
        };
        let (dropped, losses) = convert(OnIllegal::Drop).expect("nothing to set aside");
        let was_changed = losses.iter().any(|loss| {
            matches!(loss.kind, LossKind::CharactersDropped | LossKind::FurtherLosses)
        });
        match convert(OnIllegal::Quarantine) {
            Ok((kept, _)) => prop_assert_eq!(kept, dropped),
            Err(_) => prop_assert!(was_changed),
        }
    }

    #[test]
    fn readers_survive_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for reading in [
            iso2709::Reader::new(&bytes[..], OnIllegal::Drop).records().count(),
            marcxml::Reader::new(&bytes[..], OnIllegal::Drop).records().count(),
            marc_json::Reader::new(&bytes[..], OnIllegal::Drop).records().count(),
        ] {
            prop_assert!(reading <= bytes.len() + 1);
        }
    }

    /// Whatever one damaged byte does, reading ends, and what it yields is valid.
    #[test]
    fn readers_survive_a_damaged_file(
        records in prop::collection::vec(strategies::record(), 1..4), place in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        for format in Format::ALL {
            let mut bytes = write(format, &records);
            let place = place.index(bytes.len());
            bytes[place] = byte;
            let read: Vec<Record> = match format {
                Format::Iso2709 => iso2709::Reader::new(&bytes[..], OnIllegal::Drop).records().flatten().collect(),
                Format::MarcXml => marcxml::Reader::new(&bytes[..], OnIllegal::Drop).records().flatten().collect(),
                Format::MarcJson => marc_json::Reader::new(&bytes[..], OnIllegal::Drop).records().flatten().collect(),
            };
            for record in &read {
                prop_assert_eq!(strict_xml::count_records(marcxml::to_string(record).as_bytes()), Ok(1));
            }
        }
    }
}
