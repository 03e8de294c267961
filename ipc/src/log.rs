//! Where log lines go: standard error, filtered by `LISA_LOG`, without colour, one line an event.

use tracing_subscriber::EnvFilter;

/// What logs the messages of others, whole, unless it is named in `LISA_LOG`: they may hold whatever was said or is secret.
const QUIET: &str = "rmcp";

/// Starts logging for this process. `LISA_LOG` holds `tracing` directives (`debug`, `agent=debug`); without it, `info`.
///
/// Asked twice, the first stands.
pub fn start() {
    let asked = std::env::var("LISA_LOG").unwrap_or_default();
    let filter = EnvFilter::try_from_env("LISA_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let filter = match format!("{QUIET}=off").parse() {
        Ok(quiet) if !asked.contains(QUIET) => filter.add_directive(quiet),
        Ok(_) | Err(_) => filter,
    };
    // a log that takes no more lines, as on a full disk, is silent: saying so there would be a panic
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    // an already installed subscriber is a test's own; it keeps its place
    let _ = lines.try_init();
}
