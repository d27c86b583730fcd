//! One entry's keys, and what they must be.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use serde_json::value::RawValue;

use super::fields::{self, FieldError};
use super::wire::RawObject;
use crate::record::{Bib, Entry, Fields, Item, Live, RawPatron, RecordNumber, Stream, Tombstone, VarField};
use crate::sync::window::whole_second;

/// The raw values of the keys that are read, absent where the key is omitted or null.
#[derive(Default)]
pub(super) struct Known<'a> {
    id: Option<&'a RawValue>,
    updated: Option<&'a RawValue>,
    deleted: Option<&'a RawValue>,
    deleted_on: Option<&'a RawValue>,
    suppressed: Option<&'a RawValue>,
    location: Option<&'a RawValue>,
    locations: Option<&'a RawValue>,
    bib_ids: Option<&'a RawValue>,
    fixed_fields: Option<&'a RawValue>,
    var_fields: Option<&'a RawValue>,
    marc: Option<&'a RawValue>,
    too_deep: Option<FieldError>,
}

impl<'a> Known<'a> {
    pub(super) fn of(object: &RawObject<'a>) -> Self {
        let mut known = Self::default();
        for (key, raw) in object.iter() {
            let value = if raw.get() == "null" { None } else { Some(raw) };
            match key {
                "id" => known.id = value,
                "updatedDate" => known.updated = value,
                "deleted" => known.deleted = value,
                "deletedDate" => known.deleted_on = value,
                "suppressed" => known.suppressed = value,
                "location" => known.location = value,
                "locations" => known.locations = value,
                "bibIds" => known.bib_ids = value,
                // Decoding bounds the depth of these two itself.
                "fixedFields" => known.fixed_fields = value,
                "varFields" => known.var_fields = value,
                "marc" => known.marc = value,
                _ => {}
            }
            if !matches!(key, "fixedFields" | "varFields") && fields::is_too_deep(raw) {
                known.too_deep.get_or_insert_with(|| FieldError::too_deep(key));
            }
        }
        known
    }

    pub(super) fn read(&self, stream: Stream, object: &RawObject<'_>) -> Result<Entry, FieldError> {
        let id = self.id()?;
        if let Some(error) = &self.too_deep {
            return Err(error.clone());
        }
        let updated = self.updated.map(|raw| instant("updatedDate", raw)).transpose()?.flatten();
        if self.is_tombstone()? {
            let deleted_on = self.deleted_on.and_then(day);
            return Ok(Entry::Tombstone(Tombstone { id, deleted_on, updated }));
        }
        let suppressed = self.suppressed.map_or(Ok(false), |raw| flag("suppressed", raw))?;
        Ok(Entry::Live(match stream {
            Stream::Bibs => Live::Bib(Box::new(Bib {
                id,
                updated,
                suppressed,
                locations: self.locations()?,
                var_fields: self.var_fields()?,
                marc: self.marc.map(ToOwned::to_owned),
                fields: kept(object),
            })),
            Stream::Items => Live::Item(Box::new(Item {
                id,
                updated,
                suppressed,
                location: self.location.map(|raw| code("location", raw)).transpose()?.flatten(),
                bib_ids: self.bib_ids()?,
                var_fields: self.var_fields()?.unwrap_or_default(),
                fields: kept(object),
            })),
            Stream::Patrons => {
                // Not kept apart, but what masking will read must be bounded as in the other streams.
                self.var_fields()?;
                Live::Patron(Box::new(RawPatron::new(id, updated, suppressed, kept(object))))
            }
        }))
    }

    pub(super) fn id(&self) -> Result<RecordNumber, FieldError> {
        let expected = || FieldError::new("id", "a record number");
        let number: RecordNumber = serde_json::from_str(self.id.ok_or_else(expected)?.get()).map_err(|_| expected())?;
        // No record has the number 0, and no position can lie before it.
        if number.value() == 0 { Err(expected()) } else { Ok(number) }
    }

    /// `deleted` decides; where it is missing (`fields=id,deletedDate`) the date does.
    fn is_tombstone(&self) -> Result<bool, FieldError> {
        match self.deleted {
            Some(raw) => flag("deleted", raw),
            None => Ok(self.deleted_on.is_some()),
        }
    }

    fn locations(&self) -> Result<Vec<String>, FieldError> {
        let mut codes = Vec::new();
        for (index, raw) in list("locations", self.locations)?.into_iter().enumerate() {
            codes.extend(code(&format!("locations[{index}]"), raw)?);
        }
        Ok(codes)
    }

    /// The bibs that an item hangs from, each once, in Sierra's order.
    fn bib_ids(&self) -> Result<Vec<RecordNumber>, FieldError> {
        let mut ids: Vec<RecordNumber> = Vec::new();
        for (index, raw) in list("bibIds", self.bib_ids)?.into_iter().enumerate() {
            if raw.get() == "null" || is_foreign(raw) {
                continue;
            }
            let id = serde_json::from_str(raw.get())
                .map_err(|_| FieldError::new(&format!("bibIds[{index}]"), "a record number"))?;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Ok(ids)
    }

    /// The variable fields. The fixed ones are only looked at, and stay among the raw fields as they came.
    fn var_fields(&self) -> Result<Option<Vec<VarField>>, FieldError> {
        self.fixed_fields.map_or(Ok(()), fields::check_fixed)?;
        self.var_fields.map(fields::variable).transpose()
    }
}

/// Every key with its value, as it came.
fn kept(object: &RawObject<'_>) -> Fields {
    Fields::new(object.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}

/// A record of another library in a consortium (`1234567@site`): it can be named in a link and never appears in a
/// list (sierra-api.md §7 item 16), so there is no record of ours to link to. It stays visible under `bibIds`.
fn is_foreign(raw: &RawValue) -> bool {
    raw.get().contains('@')
}

fn list<'a>(path: &str, raw: Option<&'a RawValue>) -> Result<Vec<&'a RawValue>, FieldError> {
    raw.map_or_else(
        || Ok(Vec::new()),
        |raw| serde_json::from_str(raw.get()).map_err(|_| FieldError::new(path, "a list")),
    )
}

fn flag(path: &str, raw: &RawValue) -> Result<bool, FieldError> {
    match raw.get() {
        "true" | "\"true\"" => Ok(true),
        "false" | "\"false\"" => Ok(false),
        _ => Err(FieldError::new(path, "true or false")),
    }
}

/// A trimmed code: of `{"code":…}`, or a bare text. Blank and null are no code.
fn code(path: &str, raw: &RawValue) -> Result<Option<String>, FieldError> {
    if raw.get() == "null" {
        return Ok(None);
    }
    if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
        return Ok(trimmed(&text));
    }
    let object: RawObject<'_> =
        serde_json::from_str(raw.get()).map_err(|_| FieldError::new(path, "an object with a code"))?;
    let Some((_, value)) = object.iter().filter(|(key, _)| *key == "code").last() else { return Ok(None) };
    let text: Option<String> =
        serde_json::from_str(value.get()).map_err(|_| FieldError::new(&format!("{path}.code"), "text"))?;
    Ok(text.as_deref().and_then(trimmed))
}

fn trimmed(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() { None } else { Some(text.to_owned()) }
}

/// A date and time in whole seconds. Sierra writes `Z`; a stamp without a zone is taken for UTC, as all of Sierra's
/// stamps are (sierra-api.md §7 item 13). Blank is absent (BR-021).
fn instant(path: &str, raw: &RawValue) -> Result<Option<Timestamp>, FieldError> {
    let expected = || FieldError::new(path, "a date and time");
    let text: &str = serde_json::from_str(raw.get()).map_err(|_| expected())?;
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let at = text
        .parse::<Timestamp>()
        .or_else(|_| text.parse::<DateTime>().and_then(|local| TimeZone::UTC.to_timestamp(local)));
    at.map(|at| Some(whole_second(at))).map_err(|_| expected())
}

/// The day of a deletion, as written. A day that cannot be read is unknown: the deletion itself is certain, and
/// setting it aside would keep a dead record alive.
fn day(raw: &RawValue) -> Option<Date> {
    let text: &str = serde_json::from_str(raw.get()).ok()?;
    text.trim().get(..10)?.parse().ok()
}
