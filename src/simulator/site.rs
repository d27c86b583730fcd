//! The library's own codes: locations, languages, countries, materials, item types and statuses.
//!
//! A code is kept trimmed here; whether it is served padded with spaces is a switch (`sierra-api.md` §3.1: country
//! `"gw "`, location `"law  "`, material `"a  "` as recorded).

/// A code and what it stands for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Code {
    /// The code, trimmed.
    pub(crate) code: &'static str,
    /// What staff and readers see.
    pub(crate) name: &'static str,
}

const fn code(code: &'static str, name: &'static str) -> Code {
    Code { code, name }
}

/// Shelving locations. Sierra codes are up to five characters, the first letters naming the branch.
pub(crate) const LOCATIONS: [Code; 12] = [
    code("main", "Main Library"),
    code("mainr", "Main Library Reading Room"),
    code("mainf", "Main Library Folios"),
    code("art", "Art Library"),
    code("artp", "Art Library Prints"),
    code("law", "Law Library"),
    code("lawjr", "Law Library Journals"),
    code("sci", "Science Library"),
    code("scist", "Science Library Store"),
    code("mus", "Music Library"),
    code("store", "Closed Store"),
    code("web", "Online"),
];

/// What a bib without any location carries.
pub(crate) const SEVERAL_LOCATIONS: &str = "multi";

/// Languages by MARC code.
pub(crate) const LANGUAGES: [Code; 16] = [
    code("eng", "English"),
    code("fre", "French"),
    code("ger", "German"),
    code("spa", "Spanish"),
    code("ita", "Italian"),
    code("por", "Portuguese"),
    code("pol", "Polish"),
    code("cze", "Czech"),
    code("swe", "Swedish"),
    code("nor", "Norwegian"),
    code("tur", "Turkish"),
    code("rus", "Russian"),
    code("gre", "Modern Greek (1453- )"),
    code("heb", "Hebrew"),
    code("chi", "Chinese"),
    code("jpn", "Japanese"),
];

/// Countries by MARC code, which is two or three letters.
pub(crate) const COUNTRIES: [Code; 16] = [
    code("enk", "England"),
    code("fr", "France"),
    code("gw", "Germany"),
    code("sp", "Spain"),
    code("it", "Italy"),
    code("po", "Portugal"),
    code("pl", "Poland"),
    code("xr", "Czech Republic"),
    code("sw", "Sweden"),
    code("no", "Norway"),
    code("tu", "Turkey"),
    code("ru", "Russia (Federation)"),
    code("gr", "Greece"),
    code("is", "Israel"),
    code("cc", "China"),
    code("ja", "Japan"),
];

/// Materials; the code is padded to three characters in fixed field 30.
pub(crate) const MATERIALS: [Code; 6] = [
    code("a", "Book"),
    code("c", "Printed Music"),
    code("e", "Map"),
    code("g", "Film or Video"),
    code("j", "Music Recording"),
    code("z", "E-Book"),
];

/// Bibliographic levels.
pub(crate) const LEVELS: [Code; 3] = [code("m", "MONOGRAPH"), code("s", "SERIAL"), code("a", "ANALYTIC")];

/// Item types; the API's `itemType` is the name, fixed field 61 the code.
pub(crate) const ITEM_TYPES: [Code; 6] = [
    code("0", "Book"),
    code("1", "Short Loan"),
    code("5", "Score"),
    code("9", "Map"),
    code("17", "Film"),
    code("30", "Reference Only"),
];

/// Item statuses. `-` with a due date means checked out.
pub(crate) const STATUSES: [Code; 6] = [
    code("-", "AVAILABLE"),
    code("m", "MISSING"),
    code("n", "BILLED NOTPAID"),
    code("o", "LIB USE ONLY"),
    code("t", "IN TRANSIT"),
    code("!", "ON HOLDSHELF"),
];

/// Patron types by number.
pub(crate) const PATRON_TYPES: [(u16, &str); 5] =
    [(1, "Adult"), (2, "Student"), (15, "Staff"), (22, "Child"), (40, "Reciprocal Borrower")];

/// What is served when `codes` names nothing: the first entry of each table is the common one.
pub(crate) fn find(table: &'static [Code], code: &str) -> &'static Code {
    table.iter().find(|candidate| candidate.code == code).or(table.first()).expect("no code table is empty")
}
