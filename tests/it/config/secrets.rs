//! Secrets come from files of their own, the environment or systemd; nothing ever shows them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::support::{Load, minimal_with};

const CANARY: &str = "canary-7f3a";

fn secret_file(directory: &Path, mode: u32) -> PathBuf {
    let path = directory.join("sierra.client_secret");
    fs::write(&path, format!("{CANARY}\n")).expect("it can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
    path
}

fn naming(path: &Path) -> String {
    minimal_with("").replace("[sierra]", &format!("[sierra]\nclient_secret_file = {path:?}"))
}

#[test]
fn a_secret_is_read_from_its_file_without_the_line_break() {
    let directory = tempfile::tempdir().expect("a directory");
    for mode in [0o600, 0o400, 0o640] {
        let text = naming(&secret_file(directory.path(), mode));
        assert_eq!(Load::without_secret(&text).config().sierra.client_secret.expose(), CANARY);
    }
}

#[test]
fn the_environment_wins_over_the_file_and_the_file_over_the_credential() {
    let file = tempfile::tempdir().expect("a directory");
    let credentials = tempfile::tempdir().expect("a directory");
    let credential = secret_file(credentials.path(), 0o600);
    fs::write(&credential, "credential").expect("it can be written");
    let text = naming(&secret_file(file.path(), 0o600));
    let credentials = credentials.path().to_str().expect("UTF-8");
    let secret = |load: Load<'_>| load.config().sierra.client_secret.expose().to_owned();
    let with = |text| Load::without_secret(text).variable("CREDENTIALS_DIRECTORY", credentials);
    let bare = minimal_with("");
    assert_eq!(secret(with(&bare)), "credential");
    assert_eq!(secret(with(&text)), CANARY);
    assert_eq!(secret(with(&text).variable("SIERRA_SYNC__SIERRA__CLIENT_SECRET", "variable")), "variable");
}

#[test]
fn a_file_that_every_user_can_read_is_refused_but_not_where_the_platform_puts_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = secret_file(directory.path(), 0o644);
    let problem = Load::without_secret(&naming(&path)).problem();
    let hint = format!("{0} can be read by every user of this machine; run: chmod 600 {0}", path.display());
    assert_eq!(problem, format!("sierra-sync.toml:4:22: sierra.client_secret_file: {hint}"));
    let directory = directory.path().to_str().expect("UTF-8");
    let text = minimal_with("");
    let config = Load::without_secret(&text).variable("CREDENTIALS_DIRECTORY", directory).config();
    assert_eq!(config.sierra.client_secret.expose(), CANARY);
}

#[test]
fn a_missing_secret_says_where_one_may_come_from() {
    let text = minimal_with("");
    let problem = Load::without_secret(&text).problem();
    let hint = "set client_secret_file to a file that holds it, or set SIERRA_SYNC__SIERRA__CLIENT_SECRET";
    assert_eq!(problem, format!("sierra-sync.toml:3:1: sierra.client_secret: is missing; {hint}"));
}

#[test]
fn files_that_hold_no_secret_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = secret_file(directory.path(), 0o600);
    let with = |content: &[u8]| {
        fs::write(&path, content).expect("it can be written");
        Load::without_secret(&naming(&path)).problem()
    };
    assert!(with(b"").contains("is empty"));
    assert!(with(b"\n").contains("is empty"));
    assert!(with(b" \t \n").contains("is empty"));
    assert!(with(b"one\ntwo\n").contains("has more than one line"));
    assert!(with(&[0xff]).contains("it is not UTF-8 text"));
    assert!(with(&vec![b'x'; 1 << 17]).contains("is too large for a secret"));
    assert!(Load::without_secret(&naming(directory.path())).problem().contains("is not a file"));
    let nowhere = Load::without_secret(&naming(&directory.path().join("nowhere"))).problem();
    assert!(nowhere.contains("the file it names cannot be read: there is no such file"), "{nowhere}");
}

/// A secret in the wrong place is refused and not repeated: the message goes to logs and tickets.
#[test]
fn a_secret_in_the_wrong_place_is_never_shown() {
    let within = |line: &str| minimal_with("").replace("[sierra]", &format!("[sierra]\n{line}"));
    let texts = [
        within(&format!("client_secret = {CANARY:?}")),
        within(&format!("client_secert = {CANARY:?}")),
        within(&format!("client_secret_file = {CANARY:?}")),
        within(&format!("secret = [{CANARY:?}]")),
        within("").replace("http://127", &format!("http://key:{CANARY}@127")),
    ];
    for text in &texts {
        let shown = format!("{:?}", Load::without_secret(text).problems());
        assert!(!shown.contains(CANARY), "{shown}");
    }
    let text = minimal_with("");
    let flagged = Load::without_secret(&text).flag("sierra.client_secret", CANARY).problem();
    assert!(flagged.contains("a secret is never given as a flag") && !flagged.contains(CANARY), "{flagged}");
}

#[test]
fn debug_output_of_a_configuration_shows_no_secret() {
    let text = minimal_with("");
    let config = Load::without_secret(&text)
        .variable("SIERRA_SYNC__SIERRA__CLIENT_SECRET", CANARY)
        .variable("SIERRA_SYNC__OPS__TOKEN", CANARY)
        .config();
    assert!(config.ops.token.is_some());
    assert!(!format!("{config:?}").contains(CANARY));
}

/// All problems are told at once.
#[test]
fn a_missing_file_is_told_beside_a_secret_that_stands_in_the_configuration() {
    let text = minimal_with("").replace("[sierra]", "[sierra]\nclient_secret = \"x\"\nclient_secret_file = \"./gone\"");
    let problems = Load::without_secret(&text).problems();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("sierra.client_secret: a secret does not belong in this file"), "{problems:?}");
    assert!(problems[1].contains("sierra.client_secret_file: the file it names cannot be read"), "{problems:?}");
}

/// Whoever may read the file reads the secret in it, also when a variable takes its place.
#[test]
fn a_secret_in_the_file_is_refused_also_beside_a_variable() {
    let text = minimal_with("").replace("[sierra]", &format!("[sierra]\nclient_secret = {CANARY:?}"));
    let problem = Load::text(&text).problem();
    let expected = "sierra.client_secret: a secret does not belong in this file; take it out of there: \
                    SIERRA_SYNC__SIERRA__CLIENT_SECRET overrides it";
    assert!(problem.starts_with("sierra-sync.toml:4:") && problem.ends_with(expected), "{problem}");
    assert!(!problem.contains(CANARY), "{problem}");
}
