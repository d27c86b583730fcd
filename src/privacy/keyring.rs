//! The keys that make pseudonyms, keyed hashes and seals, and their rotation.

use std::fmt;
use std::io;
use std::path::Path;

use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::key_file::{self, Key};
use super::{KeyFileError, PrivacySettings, Pseudonym, SealError, sealing};
use crate::record::RecordNumber;
use crate::seed;

/// Where the key file is made when none is configured, below the state directory.
const DEFAULT_FILE: &str = "keys/privacy.keys";

/// One or more keys. The newest hashes and seals; all of them open. Its `Debug` shows key ids only.
pub struct Keyring {
    newest: DerivedKeys,
    older: Vec<DerivedKeys>,
}

/// What becomes of a key file that nobody configured and that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// It is made: nothing was sealed or hashed yet.
    Make,
    /// It is missed: pseudonyms that were given would change.
    Refuse,
    /// A key of the moment stands in for it, and nothing is written: for commands that only look.
    Forget,
}

/// Names a key without telling it: derived from it one-way. Kept beside what the key made, so that a rotation is
/// noticed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub(in crate::privacy) [u8; 8]);

/// What is derived from one key of the file, so that no two uses share a key.
pub(in crate::privacy) struct DerivedKeys {
    id: KeyId,
    pseudonym: Key,
    hash: Key,
    pub(in crate::privacy) seal: Key,
    pub(in crate::privacy) nonce: Key,
}

impl Keyring {
    /// The keyring that `settings` name; when they name none, the one below the state directory. `absent` is what
    /// becomes of that one when it is not there.
    ///
    /// # Errors
    /// When the key file cannot be used. A configured file must exist: a new key in its place would silently change
    /// every pseudonym.
    pub fn of(settings: &PrivacySettings, state: &Path, absent: Absent) -> Result<Self, KeyFileError> {
        let path = match &settings.key_file {
            Some(path) => return Self::load(path),
            None => state.join(DEFAULT_FILE),
        };
        match absent {
            Absent::Make => Self::load_or_create(&path),
            Absent::Refuse if !path.exists() => Err(KeyFileError::Gone { path }),
            Absent::Forget if !path.exists() => {
                let key = Zeroizing::new(seed::key_material());
                Ok(Self { newest: DerivedKeys::of(&key), older: Vec::new() })
            }
            Absent::Refuse | Absent::Forget => Self::load(&path),
        }
    }

    /// Reads the key file at `path`.
    ///
    /// # Errors
    /// When it is missing, open to others than its owner, or not a key file.
    pub fn load(path: &Path) -> Result<Self, KeyFileError> {
        Self::from_keys(key_file::read(path)?, path)
    }

    /// Reads the key file at `path`, or makes one with a fresh key and mode 0600.
    ///
    /// # Errors
    /// When it exists and cannot be used, or cannot be made.
    pub fn load_or_create(path: &Path) -> Result<Self, KeyFileError> {
        match key_file::read(path) {
            Err(KeyFileError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                key_file::create(path, &Zeroizing::new(seed::key_material()))?;
                Self::load(path)
            }
            keys => Self::from_keys(keys?, path),
        }
    }

    /// A keyring for tests and simulations: the same seed always gives the same key, so it protects nothing.
    #[must_use]
    pub fn for_tests(seed: u64) -> Self {
        let key = Zeroizing::new(blake3::derive_key("sierra-sync test key", &seed.to_le_bytes()));
        Self { newest: DerivedKeys::of(&key), older: Vec::new() }
    }

    /// This keyring after a rotation to the test key of `seed`: its own keys stay, to open with.
    #[must_use]
    pub fn rotated_for_tests(mut self, seed: u64) -> Self {
        let newest = Self::for_tests(seed).newest;
        self.older.insert(0, std::mem::replace(&mut self.newest, newest));
        self
    }

    /// The key that hashes and seals now. When it differs from the one that made a remembered pseudonym, that
    /// pseudonym is of an older key.
    #[must_use]
    pub fn newest(&self) -> KeyId {
        self.newest.id
    }

    /// The pseudonym of a patron under the newest key.
    #[must_use]
    pub fn pseudonym(&self, number: RecordNumber) -> Pseudonym {
        self.newest.pseudonym(number)
    }

    /// The pseudonyms of a patron under every key, the newest first: what a rotation has to re-key.
    pub fn pseudonyms(&self, number: RecordNumber) -> impl Iterator<Item = (KeyId, Pseudonym)> {
        self.keys().map(move |keys| (keys.id, keys.pseudonym(number)))
    }

    /// Seals `plain` with the newest key. Only [`Keyring::open`] with the same `purpose` reads it again.
    ///
    /// The result is 34 bytes longer than `plain` and the same each time: the nonce is derived from key, purpose and
    /// content, so no generator is needed and none can repeat. Equal values sealed for one purpose can be seen to be
    /// equal, and nothing else.
    #[must_use]
    pub fn seal(&self, purpose: &str, plain: &[u8]) -> Vec<u8> {
        sealing::seal(&self.newest, purpose, plain)
    }

    /// Opens what [`Keyring::seal`] made, with whichever key it was sealed with.
    ///
    /// # Errors
    /// When no key fits, or the bytes are not a sealed value.
    pub fn open(&self, purpose: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        sealing::open(self.keys(), purpose, sealed)
    }

    /// Seals a record number in at most 42 bytes, 38 for numbers of up to nine digits.
    #[must_use]
    pub fn seal_number(&self, purpose: &str, number: RecordNumber) -> Vec<u8> {
        let bytes = number.value().to_be_bytes();
        // Four bytes at least, so that the length tells nothing of numbers below 2³².
        let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(4).min(4);
        self.seal(purpose, bytes.get(start..).unwrap_or(&bytes))
    }

    /// Opens what [`Keyring::seal_number`] made.
    ///
    /// # Errors
    /// When no key fits, or it is not a record number.
    pub fn open_number(&self, purpose: &str, sealed: &[u8]) -> Result<RecordNumber, SealError> {
        let plain = Zeroizing::new(self.open(purpose, sealed)?);
        let mut bytes = [0; 8];
        let start = bytes.len().checked_sub(plain.len()).ok_or(SealError::Malformed)?;
        bytes.get_mut(start..).ok_or(SealError::Malformed)?.copy_from_slice(&plain);
        Ok(RecordNumber::new(u64::from_be_bytes(bytes)))
    }

    /// A hash of `parts` that nobody can repeat without the newest key. Parts are told apart: `["ab", "c"]` and
    /// `["a", "bc"]` differ.
    #[must_use]
    pub fn keyed_hash(&self, parts: &[&[u8]]) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new_keyed(&self.newest.hash);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        first_half(hasher.finalize().as_bytes())
    }

    /// The keyed hash that stands in for a patron's field: HMAC-SHA-256 over the field's name and canonical value.
    pub(in crate::privacy) fn field_hash(&self, field: &str, canonical: &[u8]) -> [u8; 16] {
        self.newest.mac(&[b"field", field.as_bytes(), canonical])
    }

    fn from_keys(keys: Vec<Key>, path: &Path) -> Result<Self, KeyFileError> {
        let mut derived = keys.iter().rev().map(DerivedKeys::of);
        let newest = derived.next().ok_or_else(|| KeyFileError::Empty { path: path.to_owned() })?;
        Ok(Self { newest, older: derived.collect() })
    }

    fn keys(&self) -> impl Iterator<Item = &DerivedKeys> {
        std::iter::once(&self.newest).chain(&self.older)
    }
}

impl DerivedKeys {
    fn of(key: &Key) -> Self {
        let derive = |context: &str| Zeroizing::new(blake3::derive_key(context, key.as_slice()));
        let id = derive("sierra-sync 2026 key id");
        let [a, b, c, d, e, f, g, h, ..] = *id;
        Self {
            id: KeyId([a, b, c, d, e, f, g, h]),
            pseudonym: derive("sierra-sync 2026 pseudonym"),
            hash: derive("sierra-sync 2026 keyed hash"),
            seal: derive("sierra-sync 2026 seal"),
            nonce: derive("sierra-sync 2026 nonce"),
        }
    }

    fn pseudonym(&self, number: RecordNumber) -> Pseudonym {
        Pseudonym::from_bytes(self.mac(&[b"patron", number.to_string().as_bytes()]))
    }

    /// The first byte of the key's id: a hint at which key sealed a value, not a proof.
    pub(in crate::privacy) fn hint(&self) -> u8 {
        let KeyId([hint, ..]) = self.id;
        hint
    }

    fn mac(&self, parts: &[&[u8]]) -> [u8; 16] {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.pseudonym.as_slice()).expect("HMAC takes a key of any length");
        for part in parts {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        first_half(&mac.finalize().into_bytes().into())
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.keys().map(|keys| keys.id)).finish()
    }
}

impl fmt::Display for KeyId {
    /// 16 lower-case hexadecimal digits.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KeyId({self})")
    }
}

fn first_half(hash: &[u8; 32]) -> [u8; 16] {
    let mut half = [0; 16];
    half.iter_mut().zip(hash).for_each(|(to, from)| *to = *from);
    half
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: RecordNumber = RecordNumber::new(1_200_345);

    #[test]
    fn pseudonyms_depend_on_number_and_key_and_on_nothing_else() {
        let keyring = Keyring::for_tests(1);
        assert_eq!(keyring.pseudonym(NUMBER), Keyring::for_tests(1).pseudonym(NUMBER));
        assert_ne!(keyring.pseudonym(NUMBER), keyring.pseudonym(NUMBER.next()));
        assert_ne!(keyring.pseudonym(NUMBER), Keyring::for_tests(2).pseudonym(NUMBER));
        assert_ne!(keyring.pseudonym(NUMBER).bytes(), keyring.field_hash("id", b"1200345"));
    }

    #[test]
    fn after_a_rotation_the_newest_key_names_patrons_and_the_older_one_is_still_known() {
        let before = Keyring::for_tests(1);
        let (old, old_id) = (before.pseudonym(NUMBER), before.newest());
        let after = before.rotated_for_tests(2);
        assert_eq!(after.pseudonym(NUMBER), Keyring::for_tests(2).pseudonym(NUMBER));
        assert_ne!(after.newest(), old_id);
        let all: Vec<_> = after.pseudonyms(NUMBER).collect();
        assert_eq!(all, vec![(after.newest(), after.pseudonym(NUMBER)), (old_id, old)]);
    }

    #[test]
    fn the_last_key_of_the_file_is_the_newest() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        let first = Keyring::load_or_create(&path).unwrap();
        assert_eq!(Keyring::load_or_create(&path).unwrap().newest(), first.newest(), "it is made once");
        let sealed = first.seal("test", b"plain");

        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str(&"ab".repeat(32));
        std::fs::write(&path, text).unwrap();
        let rotated = Keyring::load(&path).unwrap();
        assert_ne!(rotated.newest(), first.newest());
        assert_eq!(rotated.open("test", &sealed).unwrap(), b"plain");
    }

    #[test]
    fn two_new_key_files_hold_different_keys() {
        let directory = tempfile::tempdir().unwrap();
        let make = |name: &str| Keyring::load_or_create(&directory.path().join(name)).unwrap().newest();
        assert_ne!(make("one"), make("other"));
    }

    #[test]
    fn a_configured_key_file_must_exist_and_the_default_one_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = PrivacySettings {
            key_file: Some(directory.path().join("missing")),
            retention: std::time::Duration::from_secs(1),
            marc_drop: Vec::new(),
            item_fixed_drop: Vec::new(),
            item_var_keep: Vec::new(),
            patron_fields: std::collections::BTreeMap::new(),
        };
        assert!(matches!(Keyring::of(&settings, directory.path(), Absent::Make), Err(KeyFileError::Read { .. })));
        settings.key_file = None;
        let refused = Keyring::of(&settings, directory.path(), Absent::Refuse).unwrap_err();
        assert!(matches!(&refused, KeyFileError::Gone { path } if path.ends_with(DEFAULT_FILE)), "{refused}");
        Keyring::of(&settings, directory.path(), Absent::Forget).unwrap();
        assert!(!directory.path().join(DEFAULT_FILE).exists());
        let made = Keyring::of(&settings, directory.path(), Absent::Make).unwrap();
        assert!(directory.path().join(DEFAULT_FILE).exists());
        for absent in [Absent::Make, Absent::Refuse, Absent::Forget] {
            assert_eq!(Keyring::of(&settings, directory.path(), absent).unwrap().newest(), made.newest());
        }
    }

    #[test]
    fn hashed_parts_are_told_apart_and_depend_on_the_key() {
        let keyring = Keyring::for_tests(1);
        assert_ne!(keyring.keyed_hash(&[b"ab", b"c"]), keyring.keyed_hash(&[b"a", b"bc"]));
        assert_ne!(keyring.keyed_hash(&[b"ab"]), Keyring::for_tests(2).keyed_hash(&[b"ab"]));
    }

    #[test]
    fn sealed_record_numbers_fit_their_place_and_open_again() {
        let keyring = Keyring::for_tests(1);
        for (number, bytes) in
            [(0, 38), (7, 38), (999_999_999, 38), (u64::from(u32::MAX) + 1, 39), (10_u64.pow(18), 42)]
        {
            let sealed = keyring.seal_number("position", RecordNumber::new(number));
            assert_eq!(sealed.len(), bytes, "{number}");
            assert_eq!(keyring.open_number("position", &sealed), Ok(RecordNumber::new(number)));
        }
        let nine_bytes = keyring.seal("position", &[1; 9]);
        assert_eq!(keyring.open_number("position", &nine_bytes), Err(SealError::Malformed));
    }

    #[test]
    fn debug_of_a_keyring_names_keys_and_shows_none() {
        let key = blake3::derive_key("sierra-sync test key", &1_u64.to_le_bytes());
        let shown = format!("{:?}", Keyring::for_tests(1));
        assert!(shown.starts_with("[KeyId("), "{shown}");
        let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(!hex.contains(&shown[7..23]), "{shown}");
    }
}
