//! The service: hands the questions of the socket to the keeper, and waits for their answers.

use ipc::{
    contract::soul::{Reply, Request, Soul},
    id::RequestId,
    server::{Caller, Service},
};
use ractor::ActorRef;
use tokio::sync::oneshot;

use crate::keeper::{InHand, KeeperMsg, Question};

/// The soul as others see it.
pub(crate) struct Front {
    /// Who answers.
    pub(crate) keeper: ActorRef<KeeperMsg>,
    /// What the thread behind it is at.
    pub(crate) in_hand: InHand,
}

impl Service<Soul> for Front {
    async fn answer(&self, caller: Caller, id: RequestId, request: Request) -> Reply {
        let (answer, answered) = oneshot::channel();
        let question = Box::new(Question { caller, id, request, answer });
        if self.keeper.cast(KeeperMsg::Ask(question)).is_ok()
            && let Ok(reply) = answered.await
        {
            return reply;
        }
        // the process is ending: its connections end with it, and whoever asked asks the next one, by the same id
        std::future::pending().await
    }

    fn busy(&self) -> Option<std::time::Duration> {
        self.in_hand.since()
    }
}
