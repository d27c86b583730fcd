//! What the key may do: all that is needed, and as little more as the vendor allows (A9).

use super::{ProbeLine, Tell};
use crate::cli::exit::Exit;
use crate::config::Config;
use crate::record::Stream;

/// Compares `permissions`, such as `Bibs_List` and `Items_Read` (sierra-api.md §1.4), with the streams that are on.
/// `refused` are those that Sierra did not let the key read.
pub(super) fn probe(config: &Config, permissions: &[String], refused: &[Stream], tell: &mut Tell<'_>) {
    let streams: Vec<Stream> = config.streams.iter().map(|settings| settings.stream).collect();
    for line in lines(&streams, permissions, refused) {
        tell.line(&line);
    }
}

fn lines(streams: &[Stream], permissions: &[String], refused: &[Stream]) -> Vec<ProbeLine> {
    let missing: Vec<&str> =
        streams.iter().copied().filter(|stream| !may_read(*stream, permissions)).map(role).collect();
    if !missing.is_empty() {
        let message = format!("the key lacks what {} needs", missing.join(" and "));
        let hint =
            format!("ask the vendor, or whoever keeps your API keys, to tick {} for this key", missing.join(" and "));
        return vec![ProbeLine::bad("roles", message, Some(hint), Exit::Credentials)];
    }
    if !refused.is_empty() {
        let names: Vec<&str> = refused.iter().copied().map(Stream::name).collect();
        let message = format!("the token lists what {} needs, yet Sierra refused to serve it", names.join(" and "));
        let hint = "ask whoever keeps your API keys whether this key is limited to other addresses, locations or \
                    versions of the API";
        return vec![ProbeLine::bad("roles", message, Some(hint.to_owned()), Exit::Credentials)];
    }
    let unneeded: Vec<&str> =
        permissions.iter().map(String::as_str).filter(|permission| !is_reading(permission)).collect();
    if unneeded.is_empty() {
        return vec![ProbeLine::good("roles", "the key may read what is followed, and write nothing")];
    }
    let message = format!("the key can also write ({})", unneeded.join(", "));
    vec![ProbeLine::note("roles", message, "ask for a key that can only read; this program never writes to Sierra")]
}

fn may_read(stream: Stream, permissions: &[String]) -> bool {
    let records = noun(stream);
    permissions.iter().any(|permission| {
        permission.strip_prefix(records).is_some_and(|rest| rest == "_List" || rest.starts_with("_Read"))
    })
}

/// Whether a permission can change nothing. What is not known to be harmless is reported.
fn is_reading(permission: &str) -> bool {
    permission.split('_').skip(1).any(|word| ["List", "Read", "Query", "Search"].contains(&word))
}

fn noun(stream: Stream) -> &'static str {
    match stream {
        Stream::Bibs => "Bibs",
        Stream::Items => "Items",
        Stream::Patrons => "Patrons",
    }
}

fn role(stream: Stream) -> &'static str {
    match stream {
        Stream::Bibs => "\"Bibs Read\"",
        Stream::Items => "\"Items Read\"",
        Stream::Patrons => "\"Patrons Read\"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(permissions: &[&str]) -> ProbeLine {
        let permissions: Vec<String> = permissions.iter().map(|permission| (*permission).to_owned()).collect();
        lines(&[Stream::Bibs, Stream::Items], &permissions, &[]).remove(0)
    }

    #[test]
    fn a_key_that_is_refused_in_spite_of_its_roles_is_not_called_well() {
        let permissions = ["Bibs_List".to_owned(), "Items_Read".to_owned()];
        let line = lines(&[Stream::Bibs, Stream::Items], &permissions, &[Stream::Items]).remove(0);
        assert_eq!((line.ok, line.exit), (false, Exit::Credentials));
        assert!(line.message.contains("what items needs"), "{}", line.message);
    }

    #[test]
    fn a_missing_role_is_named_as_the_vendor_names_it() {
        let line = of(&["Bibs_List", "Bibs_Read_Marc", "Info_Token_Read"]);
        assert_eq!((line.ok, line.exit), (false, Exit::Credentials));
        assert!(line.hint.is_some_and(|hint| hint.contains("\"Items Read\"") && !hint.contains("Bibs")));
    }

    /// A9: the key is scoped as narrowly as possible; one that can also write is reported.
    #[test]
    fn a_key_that_can_also_write_is_reported() {
        assert_eq!(of(&["Bibs_List", "Items_Read"]).hint, None);
        let line = of(&["Bibs_List", "Items_Read", "Items_Update", "Patrons_Holds_Create"]);
        assert!(line.ok && line.hint.is_some());
        assert!(line.message.contains("Items_Update, Patrons_Holds_Create"), "{}", line.message);
    }
}
