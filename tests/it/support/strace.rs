//! What `strace` saw a program ask of its files, in order: with every byte that it wrote.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a recording needs: every byte, every path, no signals.
const RECORDING: &str = "strace -f -y -xx -s 16777216 -e signal=none -e trace=openat,lseek,write,pwrite64,ftruncate,\
                         fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat";

/// A call that is about files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    /// A file was opened for writing, or made.
    Open { path: PathBuf, is_made: bool, is_emptied: bool, is_appended_to: bool },
    /// Where the next write of a file goes, as the kernel answered.
    Seek { path: PathBuf },
    /// Bytes went to a place in a file; without one, to where the last write ended.
    Write { path: PathBuf, at: Option<u64>, bytes: Vec<u8> },
    /// A file was made shorter or longer.
    Length { path: PathBuf, bytes: u64 },
    /// A file or directory was synced.
    Sync { path: PathBuf },
    /// A name was given to another file, or to none.
    Rename { from: PathBuf, to: PathBuf },
    /// A name was taken away.
    Remove { path: PathBuf },
    /// A directory was made.
    MakeDirectory { path: PathBuf },
    /// Something that no file keeps: what the program said on its standard output.
    Said(String),
}

/// A call begins or ends. Calls of several threads overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// The call with this number was entered.
    Begun(usize, Call),
    /// It returned this, and not an error.
    Done(usize, u64),
    /// It returned an error.
    Failed(usize),
}

/// Whether it is here and may trace.
pub(crate) fn works() -> bool {
    let tried = Command::new("strace").args(["-o", "/dev/null", "true"]).status();
    tried.is_ok_and(|status| status.success())
}

/// The command that records what another one does, to be written before that one.
pub(crate) fn recorder(log: &Path) -> String {
    format!("{RECORDING} -o {}", log.display())
}

/// The command that lets the calls of the name `call` on `path` fail with `error`, from the `from`-th on: that one alone,
/// or for good.
pub(crate) fn spoiler(path: &Path, call: &str, error: &str, from: u64, for_good: bool) -> String {
    let on = if for_good { "+" } else { "" };
    let path = path.display();
    format!(
        "strace -f -o /dev/null -e signal=none -P {path} -e trace={call} -e inject={call}:error={error}:when={from}{on}"
    )
}

/// Reads what [`recorder`] wrote of a program that began in `directory`. Calls that are about no file are left out.
pub(crate) fn read(log: &str, directory: &Path) -> Vec<Step> {
    let mut steps = Vec::new();
    // By thread: what it began and has not ended.
    let mut open: HashMap<&str, (usize, String)> = HashMap::new();
    for (number, line) in log.lines().enumerate() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(begun) = rest.strip_suffix(" <unfinished ...>") {
            // Its result is not known yet: an opened file tells its path by its arguments too.
            if let Some(call) = call(begun, "", directory) {
                steps.push(Step::Begun(number, call));
            }
            open.insert(thread, (number, begun.to_owned()));
        } else if let Some((_, ended)) = rest.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>")) {
            let Some((begun, text)) = open.remove(thread) else { continue };
            if call(&text, "", directory).is_some() {
                steps.push(result(begun, &format!("{text}{ended}")));
            }
        } else if let Some((arguments, answer)) = rest.rsplit_once(" = ") {
            let Some(call) = call(arguments.trim_end(), answer, directory) else { continue };
            steps.extend([Step::Begun(number, call), result(number, rest)]);
        }
    }
    steps
}

fn result(number: usize, whole: &str) -> Step {
    let answer = whole.rsplit_once(" = ").map_or("?", |(_, answer)| answer);
    let digits: String = answer.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().map_or(Step::Failed(number), |returned| Step::Done(number, returned))
}

fn call(text: &str, answer: &str, directory: &Path) -> Option<Call> {
    let (name, arguments) = text.split_once('(')?;
    let arguments: Vec<&str> = arguments.trim_end_matches(')').split(", ").collect();
    let argument = |place: usize| arguments.get(place).copied().unwrap_or_default();
    let whole = |path: PathBuf| if path.is_absolute() { tidy(&path) } else { tidy(&directory.join(path)) };
    let named = |place: usize| whole(text_of(argument(place)));
    let path = || behind(argument(0)).map(|path| tidy(&path));
    let number = |place: usize| argument(place).parse::<u64>().ok();
    match name {
        "openat" => {
            let flags: Vec<&str> = argument(2).split('|').collect();
            let has = |flag| flags.contains(&flag);
            if has("O_RDONLY") {
                return None;
            }
            // The answer tells the path whole; before there is one, or where it failed, it is as it was asked for.
            let path = behind(answer).map_or_else(|| named(1), |path| tidy(&path));
            Some(Call::Open {
                path,
                is_made: has("O_CREAT"),
                is_emptied: has("O_TRUNC"),
                is_appended_to: has("O_APPEND"),
            })
        }
        "lseek" => Some(Call::Seek { path: path()? }),
        "write" if argument(0).starts_with("1<") => {
            Some(Call::Said(String::from_utf8_lossy(&bytes_of(argument(1))).into_owned()))
        }
        "write" => Some(Call::Write { path: path()?, at: None, bytes: bytes_of(argument(1)) }),
        "pwrite64" => Some(Call::Write { path: path()?, at: Some(number(3)?), bytes: bytes_of(argument(1)) }),
        "ftruncate" => Some(Call::Length { path: path()?, bytes: number(1)? }),
        "fsync" | "fdatasync" => Some(Call::Sync { path: path()? }),
        "rename" => Some(Call::Rename { from: named(0), to: named(1) }),
        "renameat" | "renameat2" => {
            let below = |place: usize| behind(argument(place)).unwrap_or_default();
            let at = |place: usize| whole(below(place).join(text_of(argument(place + 1))));
            Some(Call::Rename { from: at(0), to: at(2) })
        }
        "unlink" => Some(Call::Remove { path: named(0) }),
        "unlinkat" => {
            Some(Call::Remove { path: whole(behind(argument(0)).unwrap_or_default().join(text_of(argument(1)))) })
        }
        "mkdir" => Some(Call::MakeDirectory { path: named(0) }),
        "mkdirat" => Some(Call::MakeDirectory { path: named(1) }),
        _ => None,
    }
}

/// The path behind a descriptor, as in `3<\x2f\x74>`.
fn behind(descriptor: &str) -> Option<PathBuf> {
    let (_, path) = descriptor.split_once('<')?;
    Some(PathBuf::from(String::from_utf8(unhex(path)).ok()?))
}

fn text_of(quoted: &str) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(&bytes_of(quoted)).into_owned())
}

fn bytes_of(quoted: &str) -> Vec<u8> {
    assert!(!quoted.ends_with("..."), "the recording is cut: {} bytes", quoted.len());
    unhex(quoted.trim_matches('"'))
}

/// `\x41\x42` as bytes; what is not written so ends it.
fn unhex(text: &str) -> Vec<u8> {
    let byte = |piece: &[u8]| match piece {
        [b'\\', b'x', high, low] => {
            let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            Some(digit(*high)? << 4 | digit(*low)?)
        }
        _ => None,
    };
    text.as_bytes().chunks(4).map_while(byte).collect()
}

/// The same path without `.` in it.
fn tidy(path: &Path) -> PathBuf {
    path.components().filter(|component| !matches!(component, std::path::Component::CurDir)).collect()
}

#[test]
fn a_recording_is_read_call_by_call() {
    let hex = |text: &str| text.bytes().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
    let (file, other) = (hex("/s/a"), hex("./b"));
    let log = format!(
        "7 openat(AT_FDCWD<{0}>, \"{1}\", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 3<{file}>\n\
         7 pwrite64(3<{file}>, \"{2}\", 2, 40 <unfinished ...>\n\
         8 fsync(3<{file}>)                          = -1 EIO (Input/output error)\n\
         7 <... pwrite64 resumed>)           = 2\n\
         8 rename(\"{file}\", \"{other}\") = 0\n\
         8 write(1<{0}>, \"{3}\", 3) = 3\n\
         8 +++ exited with 0 +++\n",
        hex("/s"),
        hex("a"),
        hex("xy"),
        hex("ok\n"),
    );
    let path = PathBuf::from("/s/a");
    let open = Call::Open { path: path.clone(), is_made: true, is_emptied: false, is_appended_to: false };
    let expected = [
        Step::Begun(0, open),
        Step::Done(0, 3),
        Step::Begun(1, Call::Write { path: path.clone(), at: Some(40), bytes: b"xy".to_vec() }),
        Step::Begun(2, Call::Sync { path: path.clone() }),
        Step::Failed(2),
        Step::Done(1, 2),
        Step::Begun(4, Call::Rename { from: path, to: "/s/b".into() }),
        Step::Done(4, 0),
        Step::Begun(5, Call::Said("ok\n".into())),
        Step::Done(5, 3),
    ];
    assert_eq!(read(&log, Path::new("/s")), expected);
}
