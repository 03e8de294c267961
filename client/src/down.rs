//! `lisa down`: asks the supervisor to stop, and waits until the kernel says that it has.

use std::time::Instant;

use ipc::{contract::chat::STOP, endpoint::lock_file, exit::Fault, home::Home};
use serde_json::{Value, json};

use crate::{
    arguments::Down,
    link::{ANSWER_PATIENCE, Link, LinkError},
    output,
};

/// Stops the supervisor. It is over when the lock of the home is free, which no dead or half-dead process can pretend.
pub(crate) async fn down(home: &Home, json: bool, asked: &Down) -> Result<(), Fault> {
    let began = Instant::now();
    let mut link = Link::open(home).await?;
    match link.ask::<Value>(STOP, (), ANSWER_PATIENCE).await {
        // one that ends before its answer arrives has done what was asked
        Ok(_) | Err(LinkError::Gone) => {}
        Err(error) => return Err(error.into()),
    }
    let patience = asked.timeout.saturating_sub(began.elapsed());
    let Some(lock) = lock_file(&home.lock(), patience).await.map_err(Fault::failed)? else {
        let said = format!(
            "the supervisor was asked to stop and has not ended within {:?}; \
             `lisa status` shows what it waits for, and `lisa down --timeout 2m` waits longer",
            asked.timeout
        );
        return Err(Fault::failed(said));
    };
    drop(lock);
    let took = began.elapsed();
    if json {
        return output::json(&json!({"stopped": true, "took_ms": took.as_millis()}));
    }
    output::aside(&format!("stopped ({:.1} s)", took.as_secs_f64()));
    Ok(())
}
