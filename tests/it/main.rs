//! The real binaries, each test in a world of its own: run, fed, killed, and looked at.

#![expect(clippy::unwrap_used, reason = "what cannot be had here is the failure of the test")]
#![expect(clippy::needless_pass_by_value, reason = "`json!` reads best where it is used")]

mod stage;

mod approval;
mod asked_for;
mod bad_input;
mod choosing;
mod conversation;
mod deaths;
mod deeds;
mod dreams;
mod gates;
mod heartbeat;
mod hostile;
mod isolation;
mod length;
mod liveness;
mod managers;
mod mcp;
mod models;
mod notes;
mod objections;
mod old_home;
mod peers;
mod persistence;
mod planted;
mod planted_at_work;
mod prompt_inputs;
mod providers;
mod reflection;
mod reload;
mod sessions;
mod settings;
mod start_and_stop;
mod sub_turn;
mod supervision;
mod tidy;
mod tools;
mod torture;
mod weather;
