//! What every turn shares: the model, the soul, the prompt, the sessions, the clock.

use std::sync::Arc;

use ipc::{
    client::{Client, News},
    config::Reflect,
    contract::{
        agent::Agent,
        soul::{Notice, Soul},
    },
    server::Notices,
};
use jiff::{Timestamp, ZonedDateTime, tz::TimeZone};
use tokio::sync::{Mutex, mpsc};

use crate::{
    approval::Approvals,
    models::Models,
    portrait::{Held, Portrait, PortraitError, Reader},
    session::{Catalog, Header, Kind},
    spent::Spent,
    surroundings::Lookout,
    tools::{Servers, Toolbox},
};

/// Made once a life.
pub(crate) struct Mind {
    pub(crate) models: Models,
    /// What thinking cost today.
    pub(crate) spent: Spent,
    /// How many tokens one turn of her own time may use.
    pub(crate) run_tokens_max: Option<u64>,
    pub(crate) soul: Client<Soul>,
    pub(crate) portrait: Portrait,
    /// Sees her skills, and what a project brings along.
    pub(crate) lookout: Lookout,
    /// The tools she has beside the soul's.
    pub(crate) toolbox: Arc<Toolbox>,
    /// When a person is asked first, and what waits for an answer.
    pub(crate) approvals: Approvals,
    /// The servers that bring more of them.
    pub(crate) servers: Servers,
    pub(crate) catalog: Catalog,
    pub(crate) notices: Notices<Agent>,
    pub(crate) clock: fn() -> Timestamp,
    pub(crate) zone: TimeZone,
    /// When this life began.
    pub(crate) begun: Timestamp,
    /// Who talks with her where a client does not say.
    pub(crate) person: Option<String>,
    /// When she looks back on a conversation.
    pub(crate) reflect: Reflect,
    /// From how many objections in seven days on she is asked to think about them.
    pub(crate) objections_a_week: u32,
    /// Held while a birth is under way: there is one at a time. True once she is known to be born.
    pub(crate) born: Mutex<bool>,
}

impl std::fmt::Debug for Mind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mind({})", self.models.name())
    }
}

impl Mind {
    /// Whom she talks with in a session: whom it was begun with, else whom the configuration names; nobody in her own time.
    pub(crate) fn person_in<'a>(&'a self, header: &'a Header) -> Option<&'a str> {
        match header.kind {
            Some(Kind::Heartbeat) => None,
            // as in the turn it is a part of, which may be of her own time
            Some(Kind::Task) => header.person.as_deref(),
            Some(Kind::Chat | Kind::Reflect) | None => header.person.as_deref().or(self.person.as_deref()),
        }
    }

    /// What a model call in a session begins with, as of now.
    pub(crate) async fn held(&self, header: &Header) -> Result<Held, PortraitError> {
        let reader = Reader { person: self.person_in(header), folder: header.folder() };
        let around = self.lookout.look(reader.folder, self.now()).await;
        self.portrait.current(&self.soul, reader, around).await
    }

    /// The instant.
    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// The instant, where she lives.
    pub(crate) fn here_and_now(&self) -> ZonedDateTime {
        self.now().to_zoned_datetime(self.zone.clone())
    }

    /// Hears what the soul tells, for as long as this process lives.
    pub(crate) async fn listen(&self, mut news: mpsc::Receiver<News<Soul>>) {
        while let Some(told) = news.recv().await {
            match told {
                News::Notice(Notice::Changed(changed)) => self.portrait.told(changed.prompt_version),
                News::Up(_) | News::Down => self.portrait.forget(),
            }
        }
    }
}
