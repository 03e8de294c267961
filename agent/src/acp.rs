//! The methods of the Agent Client Protocol that belong to a session, each answered here.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use ipc::{
    acp::{self, ContentBlock, EmbeddedResourceResource, SessionUpdate},
    contract::agent::Reply,
    id::RequestId,
    wire::{RpcError, code},
};
use ractor::{Actor, ActorRef, call};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    conversation::{Conversation, ConversationMsg, Prompt, not_found_or_failed},
    mind::Mind,
    provider::{Block, Message, Role},
    session::{Kind, SessionError, Transcript},
    voice::update_params,
};

/// How many conversations are held in memory; one that nobody has used for longest gives way.
const OPEN_MAX: usize = 32;
/// How many bytes of a session's past are shown when it is loaded, the newest; well inside one frame.
const REPLAY_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The conversations of this life.
#[derive(Debug)]
pub(crate) struct Desk {
    mind: Arc<Mind>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    conversations: BTreeMap<String, (u64, ActorRef<ConversationMsg>)>,
    uses: u64,
}

impl Desk {
    /// No conversation is open yet.
    pub(crate) fn new(mind: Arc<Mind>) -> Self {
        Self { mind, open: Mutex::default() }
    }

    /// Answers one method.
    pub(crate) async fn answer(&self, request: RequestId, method: &str, params: Value) -> Reply {
        let answered = match method {
            "session/new" => self.new_session(params).await,
            "session/list" => self.list().await,
            "session/load" => self.load(params).await,
            "session/resume" => self.resume(params).await,
            "session/prompt" => self.prompt(request, params).await,
            "session/cancel" => self.cancel(params),
            "session/close" => self.close(params),
            other => Err(RpcError::new(code::METHOD_NOT_FOUND, format!("nobody here answers `{other}`"))),
        };
        answered.unwrap_or_else(Reply::Failed)
    }

    async fn new_session(&self, params: Value) -> Result<Reply, RpcError> {
        let asked: acp::NewSessionRequest = read(params)?;
        let mind = self.mind.clone();
        let cwd = asked.cwd.display().to_string();
        let making =
            move || mind.catalog.create(Kind::Chat, &cwd, mind.provider.model(), &mind.here_and_now());
        let header = blocking(making).await?;
        relayed(&acp::NewSessionResponse::new(header.id))
    }

    async fn list(&self) -> Result<Reply, RpcError> {
        let catalog = self.mind.catalog.clone();
        let listed = blocking(move || catalog.list()).await?;
        let sessions = listed.into_iter().map(|session| {
            // which of them a client may take up by itself: those of the original are a person's to name
            let meta: acp::Meta =
                [("lisa".to_owned(), json!({"own": session.header.kind.is_some()}))].into_iter().collect();
            acp::SessionInfo::new(session.header.id, session.header.cwd)
                .title(session.title)
                .updated_at(session.updated.to_string())
                .meta(meta)
        });
        relayed(&acp::ListSessionsResponse::new(sessions.collect()))
    }

    async fn load(&self, params: Value) -> Result<Reply, RpcError> {
        let asked: acp::LoadSessionRequest = read(params)?;
        let transcript = self.transcript(&asked.session_id.0).await?;
        let loaded = acp::LoadSessionResponse::new().meta(last_reply(&transcript));
        let result = serde_json::to_value(loaded).map_err(internal)?;
        Ok(Reply::Replayed { updates: past(&transcript), result })
    }

    async fn resume(&self, params: Value) -> Result<Reply, RpcError> {
        let asked: acp::ResumeSessionRequest = read(params)?;
        let transcript = self.transcript(&asked.session_id.0).await?;
        relayed(&acp::ResumeSessionResponse::new().meta(last_reply(&transcript)))
    }

    async fn prompt(&self, request: RequestId, params: Value) -> Result<Reply, RpcError> {
        let asked: acp::PromptRequest = read(params)?;
        let text = words(&asked.prompt)?;
        let session = asked.session_id.0.to_string();
        // one that was just retired cannot answer; the one after it can
        for _ in 0..2 {
            let conversation = self.conversation(&session).await?;
            let asked = |answer| {
                ConversationMsg::Prompt(Prompt { request: request.clone(), text: text.clone(), answer })
            };
            if let Ok(reply) = call!(conversation, asked) {
                return Ok(reply);
            }
            self.forget(&session);
        }
        Err(RpcError::new(code::INTERNAL, "the conversation ended while it was asked; ask again"))
    }

    fn cancel(&self, params: Value) -> Result<Reply, RpcError> {
        let asked: acp::CancelNotification = read(params)?;
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, conversation)) = open.conversations.get(&*asked.session_id.0) {
            let _ = conversation.cast(ConversationMsg::Cancel);
        }
        Ok(Reply::Relayed(Value::Null))
    }

    fn close(&self, params: Value) -> Result<Reply, RpcError> {
        let asked: acp::CloseSessionRequest = read(params)?;
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, conversation)) = open.conversations.get(&*asked.session_id.0) {
            let _ = conversation.cast(ConversationMsg::Retire);
        }
        relayed(&acp::CloseSessionResponse::new())
    }

    async fn transcript(&self, id: &str) -> Result<Transcript, RpcError> {
        let (catalog, id) = (self.mind.catalog.clone(), id.to_owned());
        blocking(move || catalog.read(&id)).await
    }

    /// The conversation of a session, begun when it is not there.
    async fn conversation(&self, session: &str) -> Result<ActorRef<ConversationMsg>, RpcError> {
        if let Some(open) = self.used(session) {
            return Ok(open);
        }
        let conversation = Conversation { mind: self.mind.clone(), session: session.to_owned() };
        let (begun, _) = Actor::spawn(None, conversation, ()).await.map_err(internal)?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.uses += 1;
        let uses = open.uses;
        // two may have begun it at once; a session has one, or its turns would mix
        let (_, kept) = open.conversations.entry(session.to_owned()).or_insert_with(|| (uses, begun.clone()));
        let kept = kept.clone();
        if kept.get_id() != begun.get_id() {
            begun.stop(None);
        }
        if open.conversations.len() > OPEN_MAX
            && let Some(oldest) =
                open.conversations.iter().min_by_key(|(_, (used, _))| *used).map(|(id, _)| id.clone())
            && let Some((_, conversation)) = open.conversations.get(&oldest)
        {
            // it ends when nothing is under way in it, and is forgotten when it is next asked for
            let _ = conversation.cast(ConversationMsg::Retire);
        }
        Ok(kept)
    }

    fn used(&self, session: &str) -> Option<ActorRef<ConversationMsg>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.uses += 1;
        let uses = open.uses;
        open.conversations.retain(|_, (_, actor)| actor.get_status() != ractor::ActorStatus::Stopped);
        let (last_use, actor) = open.conversations.get_mut(session)?;
        *last_use = uses;
        Some(actor.clone())
    }

    fn forget(&self, session: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.conversations.remove(session);
    }
}

/// What her last reply in a session is called, for whoever wants to speak about it: as the answer to its prompt did.
fn last_reply(transcript: &Transcript) -> Option<acp::Meta> {
    let id = transcript.last_reply()?;
    Some([("lisa".to_owned(), json!({"messageId": id}))].into_iter().collect())
}

/// A session's past as updates, oldest first, the newest that fit.
fn past(transcript: &Transcript) -> Vec<Value> {
    let id = &transcript.header.id;
    let updates: Vec<Value> = transcript.messages.iter().flat_map(|message| shown(id, message)).collect();
    let mut bytes = 0;
    let fitting = updates.iter().rev().take_while(|update| {
        bytes += update.to_string().len();
        bytes <= REPLAY_BYTES_MAX
    });
    let hidden = updates.len() - fitting.count();
    let mut past: Vec<Value> = updates.into_iter().skip(hidden).collect();
    if hidden > 0 {
        let note = format!("[{hidden} earlier items of this session are not shown]");
        past.insert(
            0,
            update_params(id, &SessionUpdate::AgentMessageChunk(acp::ContentChunk::new(note.into()))),
        );
    }
    past
}

fn shown(id: &str, message: &Message) -> Vec<Value> {
    let update = |block: &Block| match (message.role, block) {
        (Role::User, Block::Text { text }) => {
            Some(SessionUpdate::UserMessageChunk(acp::ContentChunk::new(text.as_str().into())))
        }
        (Role::Assistant, Block::Text { text }) => {
            Some(SessionUpdate::AgentMessageChunk(acp::ContentChunk::new(text.as_str().into())))
        }
        (_, Block::ToolUse { id, name, .. }) => Some(SessionUpdate::ToolCall(
            acp::ToolCall::new(id.clone(), name.clone()).status(acp::ToolCallStatus::InProgress),
        )),
        (_, Block::ToolResult { tool_use_id, content, is_error }) => {
            let status = if *is_error { acp::ToolCallStatus::Failed } else { acp::ToolCallStatus::Completed };
            let fields =
                acp::ToolCallUpdateFields::new().status(status).content(vec![content.as_str().into()]);
            Some(SessionUpdate::ToolCallUpdate(acp::ToolCallUpdate::new(tool_use_id.clone(), fields)))
        }
        (_, Block::Thinking { .. } | Block::Other(_)) => None,
    };
    message.content.iter().filter_map(update).map(|update| update_params(id, &update)).collect()
}

/// What a person said, as text.
fn words(prompt: &[ContentBlock]) -> Result<String, RpcError> {
    let refuse = |what: &str| {
        Err(RpcError::new(code::INVALID_PARAMS, format!("{what} cannot be taken yet; send text")))
    };
    let mut words = Vec::new();
    for block in prompt {
        match block {
            ContentBlock::Text(text) => words.push(text.text.clone()),
            ContentBlock::ResourceLink(link) => words.push(format!("[{}]({})", link.name, link.uri)),
            ContentBlock::Resource(resource) => match &resource.resource {
                EmbeddedResourceResource::TextResourceContents(text) => {
                    words.push(format!("[{}]\n{}", text.uri, text.text));
                }
                _ => return refuse("a file that is no text"),
            },
            ContentBlock::Image(_) => return refuse("an image"),
            ContentBlock::Audio(_) => return refuse("a sound"),
            _ => return refuse("content of this kind"),
        }
    }
    let words = words.join("\n");
    if words.trim().is_empty() {
        return Err(RpcError::new(code::INVALID_PARAMS, "the message is empty; say something"));
    }
    Ok(words)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SessionError> + Send + 'static,
) -> Result<T, RpcError> {
    let done = tokio::task::spawn_blocking(work).await.expect("work on session files does not panic");
    done.map_err(|error| not_found_or_failed(&error))
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    serde_json::from_value(params)
        .map_err(|error| RpcError::new(code::INVALID_PARAMS, format!("the parameters do not fit: {error}")))
}

fn relayed(result: &impl Serialize) -> Result<Reply, RpcError> {
    Ok(Reply::Relayed(serde_json::to_value(result).map_err(internal)?))
}

fn internal(error: impl std::fmt::Display) -> RpcError {
    RpcError::new(code::INTERNAL, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_sends_becomes_words_or_a_clear_no() {
        let check = |blocks: Value, expected: Result<&str, &str>| {
            let blocks: Vec<ContentBlock> = serde_json::from_value(blocks).unwrap();
            match (words(&blocks), expected) {
                (Ok(text), Ok(expected)) => assert_eq!(text, expected),
                (Err(error), Err(part)) => assert!(error.message.contains(part), "{error}"),
                (got, expected) => panic!("{got:?}, not {expected:?}"),
            }
        };
        check(json!([{"type": "text", "text": "你好"}, {"type": "text", "text": "hi"}]), Ok("你好\nhi"));
        check(
            json!([{"type": "resource_link", "name": "notes", "uri": "file:///n.md"}]),
            Ok("[notes](file:///n.md)"),
        );
        check(json!([{"type": "image", "data": "", "mimeType": "image/png"}]), Err("an image"));
        check(json!([{"type": "text", "text": " \n"}]), Err("empty"));
        check(json!([]), Err("empty"));
    }
}
