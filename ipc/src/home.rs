//! Where things lie in a home, and where its sockets are.

use std::{
    ffi::OsString,
    os::unix::{ffi::OsStrExt as _, fs::DirBuilderExt as _},
    path::{Path, PathBuf},
};

use crate::{digest::sha256_hex, hello::Role};

/// The longest socket path the systems we run on take, in bytes: macOS has 104 with the closing NUL, Linux 108.
pub const SOCKET_PATH_BYTES_MAX: usize = 103;

/// The longest name a socket of ours has.
const SOCKET_NAME_LONGEST: &str = "heartbeat.sock";

/// One home: everything Lisa keeps is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home(PathBuf);

/// Why there is no home.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Neither named nor to be guessed.
    #[error("no home: name one with `--home DIR` or LISA_HOME, since HOME is not set")]
    Nowhere,
    /// It cannot be made.
    #[error(
        "could not make the home `{path}`; see that we may write there, or choose another with `--home DIR`"
    )]
    Make {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The path makes no sense.
    #[error("the home `{path}` is no usable path")]
    Path {
        /// What was named.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl Home {
    /// The home a person named: the flag, else `LISA_HOME`, else `.lisa` in their own (`HOME`).
    pub fn resolve(
        flag: Option<PathBuf>,
        lisa_home: Option<OsString>,
        user_home: Option<OsString>,
    ) -> Result<Self, HomeError> {
        let named = |value: Option<OsString>| value.filter(|v| !v.is_empty()).map(PathBuf::from);
        let path = flag
            .or_else(|| named(lisa_home))
            .or_else(|| named(user_home).map(|user| user.join(".lisa")))
            .ok_or(HomeError::Nowhere)?;
        std::path::absolute(&path).map(Self).map_err(|source| HomeError::Path { path, source })
    }

    /// [`Home::resolve`] with what the environment says.
    pub fn from_environment(flag: Option<PathBuf>) -> Result<Self, HomeError> {
        Self::resolve(flag, std::env::var_os("LISA_HOME"), std::env::var_os("HOME"))
    }

    /// Makes the folder, for us alone, where there is none. One that is there keeps its mode: it may be the original's.
    pub fn make(&self) -> Result<(), HomeError> {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
        made.map_err(|source| HomeError::Make { path: self.0.clone(), source })
    }

    /// A home at a path that is known to be absolute.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The git repository of the self; only the soul process writes here.
    pub fn soul(&self) -> PathBuf {
        self.0.join("soul")
    }

    /// Conversations, one file each.
    pub fn sessions(&self) -> PathBuf {
        self.0.join("sessions")
    }

    /// The heartbeat's ledger.
    pub fn heartbeat(&self) -> PathBuf {
        self.0.join("heartbeat")
    }

    /// What a person may set.
    pub fn config(&self) -> PathBuf {
        self.0.join("config.toml")
    }

    /// Provider keys.
    pub fn config_env(&self) -> PathBuf {
        self.0.join("config.env")
    }

    /// Where tools work for whom no folder was named, with what is theirs for a while below `tmp`.
    pub fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    /// What she has learnt to do.
    pub fn skills(&self) -> PathBuf {
        self.0.join("skills")
    }

    /// What is proposed of her own code.
    pub fn upgrades(&self) -> PathBuf {
        self.0.join("upgrades")
    }

    /// What a person approved; only the supervisor writes here.
    pub fn approvals(&self) -> PathBuf {
        self.0.join("approvals")
    }

    /// The builds that are kept; no process of hers writes here.
    pub fn releases(&self) -> PathBuf {
        self.0.join("releases")
    }

    /// Which servers of tools a person wants.
    pub fn mcp(&self) -> PathBuf {
        self.0.join("mcp.json")
    }

    /// What each process said on standard error, and the event log.
    pub fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    /// The file whose kernel lock makes one supervisor a home.
    pub fn lock(&self) -> PathBuf {
        self.0.join("supervisor.lock")
    }

    /// Where the sockets are, or a link to where they are when this path is too long for them.
    pub fn run(&self) -> PathBuf {
        self.0.join("run")
    }
}

/// The folder of the sockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run(PathBuf);

impl Run {
    /// Where a supervisor should put the sockets of `home`: `run/` in it, or, when that is too long for a socket, a
    /// short folder named after the home in `$XDG_RUNTIME_DIR/lisa`, then in `/tmp/lisa-<uid>` (T35, B27).
    pub fn choose(home: &Home, xdg_runtime_dir: Option<&Path>, uid: u32) -> Self {
        let short = sha256_hex(home.path().as_os_str().as_bytes());
        let short = short.get(..16).unwrap_or(&short);
        let candidates = [
            Some(home.run()),
            xdg_runtime_dir.filter(|dir| dir.is_absolute()).map(|dir| dir.join("lisa").join(short)),
        ];
        let fits = |dir: &PathBuf| dir.join(SOCKET_NAME_LONGEST).as_os_str().len() <= SOCKET_PATH_BYTES_MAX;
        let chosen = candidates.into_iter().flatten().find(fits);
        Self(chosen.unwrap_or_else(|| PathBuf::from(format!("/tmp/lisa-{uid}")).join(short)))
    }

    /// Where the sockets of `home` are: what a supervisor chose is found through the home, so that a client with
    /// another environment finds it too.
    pub fn find(home: &Home) -> Self {
        let run = home.run();
        Self(std::fs::read_link(&run).unwrap_or(run))
    }

    /// A folder of sockets at a known path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The socket that clients and editors attach to.
    pub fn chat_socket(&self) -> PathBuf {
        self.0.join("chat.sock")
    }

    /// The socket of one of the children.
    pub fn socket(&self, of: Role) -> PathBuf {
        self.0.join(format!("{of}.sock"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_named_by_the_flag_then_lisa_home_then_home() {
        let resolve = |flag: Option<&str>, lisa: Option<&str>, user: Option<&str>| {
            Home::resolve(flag.map(Into::into), lisa.map(Into::into), user.map(Into::into))
        };
        assert_eq!(resolve(Some("/a"), Some("/b"), Some("/c")).unwrap(), Home::at("/a"));
        assert_eq!(resolve(None, Some("/b"), Some("/c")).unwrap(), Home::at("/b"));
        assert_eq!(resolve(None, Some(""), Some("/c")).unwrap(), Home::at("/c/.lisa"));
        assert!(matches!(resolve(None, None, None), Err(HomeError::Nowhere)));
        assert!(resolve(Some("here"), None, None).unwrap().path().is_absolute());
    }

    #[test]
    fn t35_a_home_too_long_for_a_socket_gets_a_short_folder() {
        let long = Home::at(format!("/home/{}", "x".repeat(120)));
        let fits = |run: &Run| run.socket(Role::Heartbeat).as_os_str().len() <= SOCKET_PATH_BYTES_MAX;
        let xdg = Path::new("/run/user/1000");
        let run = Run::choose(&long, Some(xdg), 1000);
        assert!(run.path().starts_with(xdg) && fits(&run), "{run:?}");
        let run = Run::choose(&long, None, 1000);
        assert!(run.path().starts_with("/tmp/lisa-1000") && fits(&run), "{run:?}");
        let long_xdg = PathBuf::from(format!("/run/{}", "y".repeat(120)));
        assert!(Run::choose(&long, Some(&long_xdg), 1000).path().starts_with("/tmp/lisa-1000"));
        let short = Home::at("/home/anna/.lisa");
        assert_eq!(Run::choose(&short, Some(xdg), 1000).path(), short.run());
        let other = Home::at(format!("/home/{}", "z".repeat(120)));
        assert_ne!(Run::choose(&long, None, 1), Run::choose(&other, None, 1), "homes do not share sockets");
    }
}
