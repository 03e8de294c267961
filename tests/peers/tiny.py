"""Writes a language model of random weights, so that a real server has something to run.

    tiny.py <a GGUF file with a tokenizer> <where to write>

It answers nonsense in well-formed tokens. That is all that is needed: what is tried is the wire, and where a grammar of the
server forces a call of a tool, the call is a real one. The tokenizer is taken from a model that a package brings along,
because a server wants one that its own code was made for.
"""

import sys

import gguf
import numpy

WIDTH, LAYERS, HEADS, INNER, CONTEXT = 64, 2, 4, 128, 65536

# How Qwen and others write calls of tools; the server finds out by it that this model knows them.
TEMPLATE = """
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
    {{- "# Tools\\n\\nYou may call one or more functions to assist with the user query.\\n\\nYou are provided with function signatures within <tools></tools> XML tags:\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}{{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n\\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\\n<tool_call>\\n{\\"name\\": <function-name>, \\"arguments\\": <args-json-object>}\\n</tool_call><|im_end|>\\n" }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant' }}
        {%- if message.content %}{{- '\\n' + message.content }}{%- endif %}
        {%- for tool_call in message.tool_calls or [] %}
            {%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' + tool_call.name + '", "arguments": ' }}{{- tool_call.arguments | tojson }}{{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {%- if loop.index0 == 0 or messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""


def main(source, target):
    fields = gguf.GGUFReader(source).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    out = gguf.GGUFWriter(target, "llama")
    out.add_context_length(CONTEXT)
    out.add_embedding_length(WIDTH)
    out.add_block_count(LAYERS)
    out.add_feed_forward_length(INNER)
    out.add_head_count(HEADS)
    out.add_head_count_kv(HEADS)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_rope_dimension_count(WIDTH // HEADS)
    out.add_rope_freq_base(10000.0)
    out.add_vocab_size(len(tokens))
    out.add_file_type(1)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("smollm")
    out.add_token_list(tokens)
    out.add_token_types(fields["tokenizer.ggml.token_type"].contents())
    out.add_token_merges(fields["tokenizer.ggml.merges"].contents())
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    out.add_pad_token_id(2)
    out.add_add_bos_token(False)
    out.add_chat_template(TEMPLATE)

    dice = numpy.random.default_rng(0)

    def weights(*shape):
        return (dice.standard_normal(shape) * 0.05).astype(numpy.float16)

    ones = numpy.ones(WIDTH, numpy.float32)
    out.add_tensor("token_embd.weight", weights(len(tokens), WIDTH))
    out.add_tensor("output_norm.weight", ones)
    for layer in range(LAYERS):
        for name, shape in [
            ("attn_q", (WIDTH, WIDTH)),
            ("attn_k", (WIDTH, WIDTH)),
            ("attn_v", (WIDTH, WIDTH)),
            ("attn_output", (WIDTH, WIDTH)),
            ("ffn_gate", (INNER, WIDTH)),
            ("ffn_up", (INNER, WIDTH)),
            ("ffn_down", (WIDTH, INNER)),
        ]:
            out.add_tensor(f"blk.{layer}.{name}.weight", weights(*shape))
        for name in ("attn_norm", "ffn_norm"):
            out.add_tensor(f"blk.{layer}.{name}.weight", ones)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
