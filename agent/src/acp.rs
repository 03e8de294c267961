//! The methods of the Agent Client Protocol that belong to a session, each answered here.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use ipc::{
    acp::{self, ContentBlock, EmbeddedResourceResource, SessionUpdate},
    contract::{agent::Reply, chat, sessions},
    id::RequestId,
    text::one_line,
    wire::{RpcError, code},
};
use jiff::SignedDuration;
use ractor::{Actor, ActorRef, call};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tracing::warn;

use crate::{
    conversation::{Asked, Conversation, ConversationMsg, Prompt, not_found_or_failed},
    mind::Mind,
    outside,
    provider::{Block, Message, Role},
    reflect::{BY_ITSELF, Due, due},
    session::{Kind, Listed, SearchError, SessionError, Transcript},
    voice::update_params,
};

/// How many conversations are held in memory; one that nobody has used for longest gives way.
const OPEN_MAX: usize = 32;
/// How many conversations are taken up at a start, to be looked back on; the others wait until they are used.
const WOKEN_MAX: usize = 8;
/// How long ago one may have been written to that is taken up although no looking back had begun.
const WOKEN_WITHIN: SignedDuration = SignedDuration::from_hours(24);
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
            "session/close" => self.close(params).await,
            chat::SESSIONS => self.sessions(params).await,
            chat::REFLECT => self.reflect(request, params).await,
            other => Err(RpcError::new(code::METHOD_NOT_FOUND, format!("nobody here answers `{other}`"))),
        };
        answered.unwrap_or_else(Reply::Failed)
    }

    async fn new_session(&self, params: Value) -> Result<Reply, RpcError> {
        let asked: acp::NewSessionRequest = read(params)?;
        let mind = self.mind.clone();
        let cwd = asked.cwd.display().to_string();
        if !asked.cwd.is_absolute() {
            let why = format!(
                "the session was not begun: its folder `{}` is no absolute path; send `cwd` from the root on",
                one_line(&cwd, 200)
            );
            return Err(RpcError::new(code::INVALID_PARAMS, why));
        }
        let person = person(asked.meta.as_ref())?.or_else(|| mind.person.clone());
        let making = move || {
            mind.catalog.create_with(person, Kind::Chat, &cwd, &mind.models.name(), &mind.here_and_now())
        };
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

    /// Answers a question about the conversations on disk.
    async fn sessions(&self, params: Value) -> Result<Reply, RpcError> {
        let catalog = self.mind.catalog.clone();
        let reply = match read(params)? {
            sessions::Request::List { limit } => {
                sessions::Reply::Listed(blocking(move || catalog.sessions(limit)).await?)
            }
            sessions::Request::Search { query, limit } => {
                let searching = tokio::task::spawn_blocking(move || catalog.search(&query, limit));
                let found = searching.await.expect("reading sessions does not panic");
                sessions::Reply::Found(found.map_err(|error| match &error {
                    SearchError::Empty { .. } => RpcError::new(code::INVALID_PARAMS, error.to_string()),
                    SearchError::Session(error) => not_found_or_failed(error),
                })?)
            }
            sessions::Request::Show { session, before, limit } => {
                sessions::Reply::Page(blocking(move || catalog.page(&session, before, limit)).await?)
            }
            sessions::Request::Replay { session, answer } => {
                let replay = blocking(move || catalog.replay(&session, answer)).await?;
                let none = || RpcError::new(code::NOT_FOUND, "the session has no such answer of a model");
                sessions::Reply::Replayed(Box::new(replay.ok_or_else(none)?))
            }
        };
        relayed(&reply)
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
        let asked_for = Asked::of(words(&asked.prompt)?);
        self.ask(&asked.session_id.0, request, asked_for).await
    }

    async fn reflect(&self, request: RequestId, params: Value) -> Result<Reply, RpcError> {
        let session = params.get("sessionId").and_then(Value::as_str);
        let session = session.ok_or_else(|| {
            RpcError::new(code::INVALID_PARAMS, "`sessionId` says which session; it is missing")
        })?;
        self.ask(session, request, Asked::LookBack).await
    }

    /// Asks a conversation, and waits until its turn came and is over.
    async fn ask(&self, session: &str, request: RequestId, what: Asked) -> Result<Reply, RpcError> {
        // one that was just retired cannot answer; the one after it can
        for _ in 0..2 {
            let conversation = self.conversation(session).await?;
            let asked = |answer| {
                ConversationMsg::Prompt(Prompt { request: request.clone(), what: what.clone(), answer })
            };
            if let Ok(reply) = call!(conversation, asked) {
                return Ok(reply);
            }
            self.forget(session);
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

    /// Ends a conversation; what is to be looked back on is looked back on behind the answer.
    async fn close(&self, params: Value) -> Result<Reply, RpcError> {
        let asked: acp::CloseSessionRequest = read(params)?;
        let conversation = self.conversation(&asked.session_id.0).await?;
        let _ = conversation.cast(ConversationMsg::Retire);
        relayed(&acp::CloseSessionResponse::new())
    }

    /// At the start of a life: looking back that another life began is gone on with, and what it had not come to waits
    /// for its quiet time again.
    pub(crate) async fn wake(&self) {
        if !self.mind.reflect.enabled {
            return;
        }
        let (catalog, now) = (self.mind.catalog.clone(), self.mind.now());
        let looking = move || {
            let waiting = |session: &Listed| {
                let recent = now.duration_since(session.updated) <= WOKEN_WITHIN;
                // those of the original are a person's to name
                let transcript = session.header.kind.and_then(|_| catalog.read(&session.header.id).ok());
                transcript.is_some_and(|transcript| match due(&transcript, BY_ITSELF) {
                    Due::Nothing => false,
                    Due::Resume(_) => true,
                    Due::Fresh { .. } => recent,
                })
            };
            Ok(catalog.list()?.into_iter().filter(waiting).take(WOKEN_MAX).collect::<Vec<_>>())
        };
        match blocking(looking).await {
            Ok(waiting) => {
                for session in waiting {
                    if let Ok(conversation) = self.conversation(&session.header.id).await {
                        let _ = conversation.cast(ConversationMsg::Wake);
                    }
                }
            }
            Err(error) => warn!(error = error.message, "what is to be looked back on could not be found out"),
        }
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
    let said = transcript.messages.iter().enumerate();
    // what the runtime told the model was said by nobody
    let said = said.filter(|(at, message)| message.role == Role::Assistant || !transcript.is_ours(*at));
    let updates: Vec<Value> = said.flat_map(|(_, message)| shown(id, message)).collect();
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

/// Whom a client says she will talk with.
fn person(meta: Option<&acp::Meta>) -> Result<Option<String>, RpcError> {
    match meta.and_then(|meta| meta.get("lisa")).and_then(|lisa| lisa.get("person")) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => match ipc::person::check(name) {
            Ok(()) => Ok(Some(name.clone())),
            Err(why) => Err(RpcError::new(code::INVALID_PARAMS, why)),
        },
        Some(other) => {
            let why = format!("`person` is a name, not {}", ipc::text::one_line(&other.to_string(), 80));
            Err(RpcError::new(code::INVALID_PARAMS, why))
        }
    }
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
            ContentBlock::ResourceLink(link) => {
                // the name is the program's that sent it, not the person's
                words.push(outside::quoted(
                    &link.uri,
                    &format!("a link, called {}", one_line(&link.name, 200)),
                ));
            }
            ContentBlock::Resource(resource) => match &resource.resource {
                EmbeddedResourceResource::TextResourceContents(text) => {
                    words.push(outside::quoted(&text.uri, &text.text));
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
            Ok("[outside: file:///n.md]\n| a link, called notes"),
        );
        check(json!([{"type": "image", "data": "", "mimeType": "image/png"}]), Err("an image"));
        check(json!([{"type": "text", "text": " \n"}]), Err("empty"));
        check(json!([]), Err("empty"));
    }
}
