package chattest

import (
	"net/http"
	"strings"

	"agentsite/agents/llm/chat"

	"github.com/go-json-experiment/json/jsontext"
)

// Quirk is something that servers do differently.
type Quirk string

// The quirks, with a server that has each, or a public report.
const (
	Plain            Quirk = "as OpenAI documents it"
	Whole            Quirk = "no stream, although it was asked for"
	StopAtCalls      Quirk = "finish_reason stop with calls"    // Ollama
	ObjectArguments  Quirk = "arguments as an object"           // Ollama's own layer
	IndexZero        Quirk = "all calls at index 0"             // Ollama, Gemini's layer
	NoIndex          Quirk = "calls without an index"           // some gateways
	NoIDs            Quirk = "calls without IDs"                // llama.cpp
	SameIDs          Quirk = "calls with one ID"                // LM Studio
	NullContent      Quirk = "null content beside calls"        // vLLM
	NoUsage          Quirk = "no usage"                         // LM Studio
	UsageEverywhere  Quirk = "usage in each event"              // OpenRouter
	NoDone           Quirk = "no [DONE]"                        // some proxies
	NoFinish         Quirk = "[DONE] without finish_reason"     // some proxies
	Comments         Quirk = "comments between events"          // OpenRouter
	CRLF             Quirk = "lines that end with CR LF"        // LiteLLM
	NoSpace          Quirk = "data: without a space"            // some proxies
	Parts            Quirk = "content as parts"                 // Mistral
	Reasoning        Quirk = "reasoning beside the content"     // DeepSeek, vLLM
	Thoughts         Quirk = "thoughts in the content"          // Qwen at llama.cpp
	NameTwice        Quirk = "the name of a call in each event" // some gateways
	Letters          Quirk = "arguments letter by letter"       // OpenAI
	NoStreamOptions  Quirk = "stream_options refused"           // Mistral
	CompletionTokens Quirk = "max_tokens refused"               // OpenAI's newer models
	NoToolChoice     Quirk = "tool_choice refused"              // Ollama
	BusyOnce         Quirk = "busy once"                        // all clouds

	WantsReasoning  Quirk = "reasoning_content wanted back"          // DeepSeek: abhigyanpatwari/GitNexus#43
	WantsSignature  Quirk = "extra_content wanted back"              // Gemini 3: securo-finance/securo#884
	WantsDetails    Quirk = "reasoning_details wanted back"          // OpenRouter
	LongIDs         Quirk = "IDs with a signature of 2 KB"           // LiteLLM before Gemini 3
	RefusesEcho     Quirk = "its own reasoning_content refused"      // Groq
	OtherIDs        Quirk = "another ID in each part of a call"      // poolsideai/pool#9
	OtherIDsAlone   Quirk = "another ID in each part, and no index"  // OCI: BerriAI/litellm#28223
	DeltaAndMessage Quirk = "delta and message"                      // microsoft/foundry-local#144
	MessageAtEnd    Quirk = "all again as a message at the end"      // microsoft/foundry-local#383
	NoOpeningThink  Quirk = "thoughts without <think>"               // vllm-project/vllm#17144
	OtherThoughts   Quirk = "thoughts between other marks, in parts" // Magistral
	ArgumentsTwice  Quirk = "whole arguments again at the end"       // vllm-project/vllm#51697
	ArgumentsEnded  Quirk = "whole arguments instead of the end"     // lidge-jun/opencodex#361
	EmptyFirst      Quirk = "{} before the arguments"                // layers before Anthropic
	NullArguments   Quirk = "null for no arguments"                  // NVIDIA/TensorRT-LLM#17575
	NoneArguments   Quirk = "None for no arguments"                  // vllm-project/vllm#21365
	ListArguments   Quirk = "[] for no arguments"                    // servers in PHP
	TextArguments   Quirk = "arguments as a text of a text"          // llama.cpp#20198
	MediaTypeCase   Quirk = "Application/JSON"                       // nugget/thane-ai-agent#167
	JSONLines       Quirk = "x-ndjson"                               // decolua/9router#2386
	PlainJSON       Quirk = "JSON as text/plain"                     // proxies
	NoSystem        Quirk = "no system role"                         // Gemma: microsoft/autogen#1037
	NoSystemInside  Quirk = "no system role, said in a 200"          // LM Studio
	NoStream        Quirk = "stream refused"                         // llama.cpp with tools, before 2025-05
)

// Prose writes calls into the text of the answer. A client cannot tell them from a text about calls.
const Prose Quirk = "calls as text" // Ollama without a template, vLLM without a parser

// Quirks are all that the same answer is understood of.
var Quirks = []Quirk{
	Plain, Whole, StopAtCalls, ObjectArguments, IndexZero, NoIndex, NoIDs, SameIDs, NullContent, NoUsage, UsageEverywhere, NoDone, NoFinish, Comments, CRLF, NoSpace, Parts,
	Reasoning, Thoughts, NameTwice, Letters, NoStreamOptions, CompletionTokens, NoToolChoice, BusyOnce,
	WantsReasoning, WantsSignature, WantsDetails, LongIDs, RefusesEcho, OtherIDs, OtherIDsAlone, DeltaAndMessage, MessageAtEnd, NoOpeningThink, OtherThoughts,
	ArgumentsTwice, ArgumentsEnded, EmptyFirst, NullArguments, NoneArguments, ListArguments, TextArguments, MediaTypeCase, JSONLines, PlainJSON, NoSystem, NoSystemInside, NoStream,
}

// signature holds the member with which Gemini signs a call.
var signature = object{"google": object{"thought_signature": "Q0hJ"}}

// details are the two parts of a thought at OpenRouter, and what they are together.
var details = [...]object{
	{"type": "reasoning.text", "index": 0, "text": "I should ", "format": "x-v1"},
	{"type": "reasoning.text", "index": 0, "text": "read it.", "format": "x-v1", "signature": "c2ln"},
	{"type": "reasoning.text", "index": 0, "text": "I should read it.", "format": "x-v1", "signature": "c2ln"},
}

// longID is an ID with a signature in it.
func longID(id string) string { return id + "__thought__" + strings.Repeat("Q0hJ", 500) }

// refuse answers a request that a server with a quirk refuses, and reports whether it does.
func refuse(w http.ResponseWriter, q Quirk, body []byte) bool {
	says, status := "", http.StatusBadRequest
	for quirk, field := range map[Quirk]string{NoStreamOptions: "stream_options", CompletionTokens: "max_tokens", NoToolChoice: "tool_choice", RefusesEcho: "reasoning_content"} {
		if q == quirk && strings.Contains(string(body), `"`+field+`"`) {
			says = "Unsupported parameter: " + field
		}
	}
	for _, v := range chat.Elements(chat.Fields(body)["messages"]) {
		m := chat.Fields(v)
		if role := chat.Text(m["role"]); role == "system" && (q == NoSystem || q == NoSystemInside) {
			says = "System role not supported"
		}
		calls := chat.Elements(m["tool_calls"])
		if calls == nil {
			continue
		}
		switch q {
		case WantsReasoning:
			if chat.Text(m["reasoning_content"]) != "I should read it." {
				says = "Missing reasoning_content field in the assistant message at message index 2."
			}
		case WantsDetails:
			if got := chat.Elements(m["reasoning_details"]); len(got) != 1 || !same(got[0], encode(details[2])) {
				says = "the thinking blocks were changed"
			}
		}
		for _, v := range calls {
			c := chat.Fields(v)
			if q == WantsSignature && !same(c["extra_content"], encode(signature)) {
				says = "Function call is missing a thought_signature in functionCall parts."
			}
			if q == LongIDs && !strings.HasSuffix(chat.Text(c["id"]), longID("")) {
				says = "the ID of a call is not ours"
			}
		}
	}
	if q == NoStream && string(chat.Fields(body)["stream"]) == "true" {
		says, status = "Cannot use tools with stream", http.StatusInternalServerError
	}
	switch {
	case says == "":
		return false
	case q == WantsSignature: // Gemini's layer has a list
		http.Error(w, `[{"error":{"code":400,"message":"`+says+`"}}]`, status)
	case q == NoSystemInside:
		w.Header().Set("Content-Type", "text/event-stream")
		w.Write([]byte("event: error\ndata: {\"message\":\"Error rendering prompt: " + says + "\"}\n\n"))
	default:
		http.Error(w, `{"error":{"message":"`+says+`"}}`, status)
	}
	return true
}

// same reports whether two values are one.
func same(a, b jsontext.Value) bool {
	a, b = a.Clone(), jsontext.Value(b).Clone()
	return a.Canonicalize() == nil && b.Canonicalize() == nil && string(a) == string(b)
}

// Failure is an answer of a server that is none.
type Failure struct {
	Name, ContentType, Body string
	Status                  int    // 0 for 200
	Says                    string // what its client has to be told of it
}

const text = `data: {"choices":[{"index":0,"delta":{"content":"The lamp "},"finish_reason":null}]}` + "\n\n"

// Failures are answers after which a task fails, with the reason in the server's words.
var Failures = []Failure{
	{"base_resp", "application/json", `{"id":"","choices":null,"base_resp":{"status_code":1004,"status_msg":"login fail"}}`, 0, "login fail"}, // MiniMax: Tencent/WeKnora#818
	{"empty", "text/event-stream", `data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n", 0, "no answer"},
	{"only thoughts", "text/event-stream", `data: {"choices":[{"index":0,"delta":{"content":"<think>hm</think>"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n", 0, "no answer"},
	{"no tokens left", "application/json", `{"choices":[{"message":{"role":"assistant","content":null,"reasoning":"hm"},"finish_reason":"length"}]}`, 0, "model.answer"},           // earendil-works/pi#8462
	{"an error behind a text", "text/event-stream", text + `{"error":{"message":"slot unavailable","code":503}}` + "\n\n", 0, "slot unavailable"},                                  // decolua/9router#2386
	{"an error field", "text/event-stream", text + `error: {"code":500,"message":"context shift is disabled"}` + "\n\n", 0, "context shift is disabled"},                           // ggml-org/llama.cpp#14566
	{"an error event", "text/event-stream", text + "event: error\ndata: {\"message\":\"slot unavailable\"}\n\n", 0, "slot unavailable"},                                            // LM Studio
	{"a line behind a text", "text/event-stream", text + "upstream connect error\n", 0, "upstream connect error"},                                                                  // Envoy
	{"an error of some lines", "text/event-stream", text + "{\n \"error\": {\n  \"message\": \"slot unavailable\"\n }\n}\n", 0, "slot unavailable"},                                // proxies
	{"an error in a choice", "text/event-stream", `data: {"choices":[{"delta":{},"error":{"message":"slot unavailable"},"finish_reason":"error"}]}` + "\n", 0, "slot unavailable"}, // OpenRouter
	{"a list", "Application/JSON; charset=utf-8", `[{"error":{"message":"slot unavailable"}}]`, 0, "slot unavailable"},                                                             // Gemini's layer
	{"an error object", "application/json", `{"object":"error","message":"slot unavailable","code":400}`, 0, "slot unavailable"},                                                   // vLLM
	{"a page", "text/html; charset=utf-8", "<!doctype html><html><head><title>Login</title></head><body>hello</body></html>", 0, "web page: Login"},
	{"a text", "text/plain", "upstream connect error", 0, "upstream connect error"},
	{"JSON lines", "application/x-ndjson", `{"error":"slot unavailable"}` + "\n", 0, "slot unavailable"},
	{"a page and 502", "text/html", "<html>\n<head><title>502 Bad Gateway</title></head></html>", http.StatusBadRequest, "502 Bad Gateway"},
	{"a list and 400", "application/json", `[{"error":{"message":"slot unavailable"}}]`, http.StatusBadRequest, "slot unavailable"},                                                                                // lbjlaq/Antigravity-Manager#938
	{"detail", "application/json", `{"detail":[{"loc":["body"],"msg":"field required"}]}`, http.StatusUnprocessableEntity, "field required"},                                                                       // FastAPI
	{"the provider's error", "application/json", `{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"slot unavailable\"}}"}}}`, http.StatusBadRequest, "slot unavailable"}, // OpenRouter
}

// Serve answers with the failure.
func (f *Failure) Serve(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", f.ContentType)
	if f.Status != 0 {
		w.WriteHeader(f.Status)
	}
	w.Write([]byte(f.Body))
}
