//! How a model's answer is written in each protocol, as the vendors' own servers write it.

use serde_json::{Value, json};

/// A protocol, told by what is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// OpenAI-compatible chat completions.
    Chat,
    /// Anthropic's Messages.
    Messages,
    /// Ollama's own.
    Ollama,
    /// OpenAI's Responses.
    Responses,
}

impl Dialect {
    /// The one whose method is asked for.
    pub(super) fn of(path: &str) -> Option<Self> {
        match path {
            "/v1/chat/completions" => Some(Self::Chat),
            "/v1/messages" => Some(Self::Messages),
            "/api/chat" => Some(Self::Ollama),
            "/v1/responses" => Some(Self::Responses),
            _ => None,
        }
    }

    /// What the configuration calls it.
    pub(super) fn provider(self) -> &'static str {
        match self {
            Self::Chat => "openai",
            Self::Messages => "anthropic",
            Self::Ollama => "ollama",
            Self::Responses => "responses",
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Chat | Self::Messages | Self::Responses => "text/event-stream",
            Self::Ollama => "application/x-ndjson",
        }
    }

    /// One event.
    pub(super) fn event(self, said: &Value) -> String {
        match self {
            Self::Chat => format!("data: {said}\n\n"),
            Self::Messages | Self::Responses => {
                format!("event: {}\ndata: {said}\n\n", said["type"].as_str().unwrap_or_default())
            }
            Self::Ollama => format!("{said}\n"),
        }
    }

    /// What stands before the words of an answer.
    pub(super) fn begin(self) -> String {
        match self {
            Self::Chat | Self::Ollama => String::new(),
            Self::Responses => self.event(&json!({"type": "response.created", "response": {"error": null}})),
            Self::Messages => {
                let usage = json!({"input_tokens": 11, "output_tokens": 1});
                let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage});
                let block = json!({"type": "text", "text": ""});
                [
                    json!({"type": "message_start", "message": message}),
                    json!({"type": "content_block_start", "index": 0, "content_block": block}),
                    json!({"type": "ping"}),
                ]
                .iter()
                .map(|said| self.event(said))
                .collect()
            }
        }
    }

    /// More words.
    pub(super) fn words(self, piece: &str) -> String {
        self.event(&match self {
            Self::Chat => json!({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": null}]}),
            Self::Messages => {
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}})
            }
            Self::Ollama => json!({"message": {"role": "assistant", "content": piece}, "done": false}),
            Self::Responses => json!({"type": "response.output_text.delta", "output_index": 0, "delta": piece}),
        })
    }

    /// The end of an answer that said `text`, with a reason in the protocol's words where it is not that all was said.
    pub(super) fn end(self, text: &str, finish: Option<&str>) -> String {
        match self {
            Self::Responses => {
                let content = json!([{"type": "output_text", "text": text}]);
                self.items(&[json!({"type": "message", "role": "assistant", "content": content})])
            }
            Self::Chat => {
                let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish.unwrap_or("stop")}]});
                format!("{}data: [DONE]\n\n", self.event(&end))
            }
            Self::Messages => {
                self.event(&json!({"type": "content_block_stop", "index": 0}))
                    + &self.message_end(finish.unwrap_or("end_turn"))
            }
            Self::Ollama => self
                .event(&json!({"message": {"role": "assistant", "content": ""}, "done": true,
                "done_reason": finish.unwrap_or("stop"), "prompt_eval_count": 11, "eval_count": 7})),
        }
    }

    /// A whole answer of calls.
    pub(super) fn calls(self, calls: &[(&'static str, Value)]) -> String {
        let numbered = calls.iter().enumerate();
        match self {
            Self::Responses => {
                let items = numbered.map(|(index, (name, input))| {
                    json!({"type": "function_call", "id": format!("fc_{index}"), "call_id": format!("call_{index}"),
                        "name": name, "arguments": input.to_string(), "status": "completed"})
                });
                self.items(&items.collect::<Vec<_>>())
            }
            Self::Chat => {
                let pieces: String = numbered
                    .map(|(index, (name, input))| {
                        let function = json!({"name": name, "arguments": input.to_string()});
                        let call = json!({"index": index, "id": format!("c{index}"), "type": "function", "function": function});
                        let delta = json!({"tool_calls": [call]});
                        self.event(&json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
                    })
                    .collect();
                let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
                format!("{pieces}{}data: [DONE]\n\n", self.event(&end))
            }
            Self::Messages => {
                let blocks = numbered.flat_map(|(index, (name, input))| {
                    let begun = json!({"type": "tool_use", "id": format!("toolu_{index}"), "name": name, "input": {}});
                    let input = input.to_string();
                    let piece = |piece: &str| json!({"type": "content_block_delta", "index": index,
                        "delta": {"type": "input_json_delta", "partial_json": piece}});
                    // cut in the middle, as the vendor does
                    let middle = input.char_indices().nth(input.chars().count() / 2).map_or(0, |(at, _)| at);
                    let (left, right) = input.split_at(middle);
                    [
                        json!({"type": "content_block_start", "index": index, "content_block": begun}),
                        piece(left),
                        piece(right),
                        json!({"type": "content_block_stop", "index": index}),
                    ]
                });
                blocks.map(|said| self.event(&said)).collect::<String>() + &self.message_end("tool_use")
            }
            Self::Ollama => {
                let calls: Vec<Value> = calls
                    .iter()
                    .map(|(name, input)| json!({"function": {"name": name, "arguments": input}}))
                    .collect();
                let message = json!({"role": "assistant", "content": "", "tool_calls": calls});
                self.event(&json!({"message": message, "done": false})) + &self.end("", None)
            }
        }
    }

    /// Items as they are done, and the end of the response.
    fn items(self, items: &[Value]) -> String {
        let done = items.iter().enumerate().map(|(place, item)| {
            self.event(&json!({"type": "response.output_item.done", "output_index": place, "item": item}))
        });
        let usage = json!({"input_tokens": 11, "output_tokens": 7});
        let end = json!({"type": "response.completed", "response": {"error": null, "output": items, "usage": usage}});
        done.collect::<String>() + &self.event(&end)
    }

    fn message_end(self, reason: &str) -> String {
        let delta = json!({"stop_reason": reason, "stop_sequence": null});
        let end = json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}});
        self.event(&end) + &self.event(&json!({"type": "message_stop"}))
    }
}
