package a2a_test

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/transport/adapter/adaptertest"
)

// must lists the requirements with MUST of the specification for a server, by section, with one
// request that tests each. {id} is a task that has ended. Requirements that take more than one
// request are in other tests: 3.1.2 and 3.1.6 (streams) in TestStream, 3.1.5 and 3.2.2 in
// TestTasks, 7.6.1 in TestApproval, 8.4 in TestCards, 13.1 in TestScope.
var must = []mustRow{
	{"3.1.3 GetTask: TaskNotFoundError", "GET", "/tasks/nothing", "", "1.0", "", 404, `"reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org"`, ""},
	{"3.1.4 ListTasks: artifacts are left out by default", "GET", "/tasks", "", "1.0", "", 200, `"state":"TASK_STATE_COMPLETED"`, `"artifacts"`},
	{"3.1.4 ListTasks: artifacts where they are asked for", "GET", "/tasks?includeArtifacts=true", "", "1.0", "", 200, `"artifacts":[{`, ""},
	{"3.1.4 ListTasks: nextPageToken is always there", "GET", "/tasks", "", "1.0", "", 200, `"nextPageToken":""`, ""},
	{"3.1.6 SubscribeToTask: an ended task", "POST", "/tasks/{id}:subscribe", "", "1.0", "", 400, `"UNSUPPORTED_OPERATION"`, ""},
	{"3.1.6 SubscribeToTask: by GET, as a2a.proto has it", "GET", "/tasks/{id}:subscribe", "", "1.0", "", 400, `"UNSUPPORTED_OPERATION"`, ""},
	{"3.1.1 a message to an ended task", "POST", "/message:send", "", "1.0", `{"message":{"messageId":"a","taskId":"{id}","role":"ROLE_USER","parts":[{"text":"x"}]}}`, 400, `"UNSUPPORTED_OPERATION"`, ""},
	{"3.1.1 a file is no content for this agent", "POST", "/message:send", "", "1.0", `{"message":{"messageId":"b","role":"ROLE_USER","parts":[{"raw":"eA=="}]}}`, 400, `"CONTENT_TYPE_NOT_SUPPORTED"`, ""},
	{"3.2.4 historyLength 0 has no history", "GET", "/tasks/{id}?historyLength=0", "", "1.0", "", 200, `"artifacts"`, `"history"`},
	{"3.2.4 historyLength below 0", "GET", "/tasks/{id}?historyLength=-1", "", "1.0", "", 400, `"INVALID_PARAMS"`, ""},
	{"3.3.2 credentials that are missing", "GET", "/tasks", "-", "1.0", "", 401, "", "tasks"},
	{"3.3.2 credentials that are invalid", "GET", "/tasks", "wrong", "1.0", "", 401, "", "tasks"},
	{"3.3.2 parameters are validated: pageSize", "GET", "/tasks?pageSize=0", "", "1.0", "", 400, "pageSize", ""},
	{"3.3.2 parameters are validated: pageSize is a number", "GET", "/tasks?pageSize=many", "", "1.0", "", 400, "pageSize", ""},
	{"3.3.2 parameters are validated: status", "GET", "/tasks?status=working", "", "1.0", "", 400, "status", ""},
	{"3.3.2 parameters are validated: pageToken", "GET", "/tasks?pageToken=!", "", "1.0", "", 400, "pageToken", ""},
	{"3.3.2 parameters are validated: statusTimestampAfter", "GET", "/tasks?statusTimestampAfter=today", "", "1.0", "", 400, "statusTimestampAfter", ""},
	{"3.3.2 parameters are validated: messageId", "POST", "/message:send", "", "1.0", `{"message":{"role":"ROLE_USER","parts":[{"text":"x"}]}}`, 400, "messageId", ""},
	{"3.3.2 parameters are validated: role", "POST", "/message:send", "", "1.0", `{"message":{"messageId":"c","role":"ROLE_AGENT","parts":[{"text":"x"}]}}`, 400, "role", ""},
	{"3.3.2 parameters are validated: parts", "POST", "/message:send", "", "1.0", `{"message":{"messageId":"d","role":"ROLE_USER","parts":[]}}`, 400, "parts", ""},
	{"3.3.4 CreateTaskPushNotificationConfig", "POST", "/tasks/{id}/pushNotificationConfigs", "", "1.0", `{}`, 400, `"PUSH_NOTIFICATION_NOT_SUPPORTED"`, ""},
	{"3.3.4 GetTaskPushNotificationConfig", "GET", "/tasks/{id}/pushNotificationConfigs/x", "", "1.0", "", 400, `"PUSH_NOTIFICATION_NOT_SUPPORTED"`, ""},
	{"3.3.4 ListTaskPushNotificationConfigs", "GET", "/tasks/{id}/pushNotificationConfigs", "", "1.0", "", 400, `"PUSH_NOTIFICATION_NOT_SUPPORTED"`, ""},
	{"3.3.4 DeleteTaskPushNotificationConfig", "DELETE", "/tasks/{id}/pushNotificationConfigs/x", "", "1.0", "", 400, `"PUSH_NOTIFICATION_NOT_SUPPORTED"`, ""},
	{"3.3.4 a push configuration beside a message", "POST", "/message:send", "", "1.0", `{"message":{"messageId":"e","role":"ROLE_USER","parts":[{"text":"x"}]},"configuration":{"taskPushNotificationConfig":{"url":"http://127.0.0.1/"}}}`, 400, `"PUSH_NOTIFICATION_NOT_SUPPORTED"`, ""},
	{"3.4.2 a taskId that there is not", "POST", "/message:send", "", "1.0", `{"message":{"messageId":"f","taskId":"mine","role":"ROLE_USER","parts":[{"text":"x"}]}}`, 404, `"TASK_NOT_FOUND"`, ""},
	{"3.4.3 a contextId that is not the task's", "POST", "/message:send", "", "1.0", `{"message":{"messageId":"g","taskId":"{id}","contextId":"other","role":"ROLE_USER","parts":[{"text":"x"}]}}`, 400, "contextId", ""},
	{"3.6.2 a version that is not supported", "GET", "/tasks", "", "0.5", "", 400, `"VERSION_NOT_SUPPORTED"`, ""},
	{"3.6.2 no version is 0.3, whose paths are others", "GET", "/tasks", "", "", "", 400, `"VERSION_NOT_SUPPORTED"`, ""},
	{"0.3: no version, over HTTP with JSON", "GET", "/v1/tasks/{id}", "", "", "", 200, `{"id":"{id}","contextId":"{id}","status":{"state":"TASK_STATE_COMPLETED"`, `"kind"`},
	{"0.3: 1.0 at its paths", "GET", "/v1/tasks/{id}", "", "1.0", "", 400, `"code":-32009`, ""},
	{"0.3: the extended card over JSON-RPC", "POST", "", "", "0.3", `{"jsonrpc":"2.0","id":1,"method":"agent/getAuthenticatedExtendedCard"}`, 200, `"preferredTransport":"JSONRPC"`, `"error"`},
	{"0.3: the extended card over HTTP with JSON", "GET", "/v1/card", "", "", "", 200, `"additionalInterfaces":[{`, ""},
	{"0.3: the extended card needs credentials", "GET", "/v1/card", "-", "", "", 401, "", "skills"},
	{"3.6.2 no version is 0.3", "POST", "", "", "", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"{id}"}}`, 200, `"kind":"task","status":{"state":"completed"`, ""},
	{"3.6 patch numbers are not considered", "GET", "/tasks", "", "1.0.7", "", 200, `"tasks"`, ""},
	{"3.6.1 the version as a parameter", "GET", "/tasks?A2A-Version=1.0", "", "", "", 200, `"tasks"`, ""},
	{"3.6.2 the methods of a version", "POST", "", "", "1.0", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"{id}"}}`, 200, `"code":-32601`, ""},
	{"5.5 enumerations as protocol buffers name them", "GET", "/tasks/{id}", "", "1.0", "", 200, `"role":"ROLE_USER"`, "task_id"},
	{"5.6.1 times are in UTC", "GET", "/tasks/{id}", "", "1.0", "", 200, `Z"`, "+00:00"},
	{"5.7 unknown fields are ignored", "POST", "/message:send", "", "1.0", `{"future":1,"message":{"messageId":"h","later":{},"role":"ROLE_USER","parts":[{"data":{"skill":"echo","arguments":{}}}]}}`, 200, `"TASK_STATE_COMPLETED"`, ""},
	{"5.4 TaskNotCancelableError", "POST", "", "", "1.0", `{"jsonrpc":"2.0","id":1,"method":"CancelTask","params":{"id":"{id}"}}`, 200, `"code":-32002`, ""},
	{"5.4 TaskNotFoundError", "POST", "", "", "1.0", `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}`, 200, `"code":-32001`, ""},
	{"5.4 PushNotificationNotSupportedError", "POST", "", "", "1.0", `{"jsonrpc":"2.0","id":1,"method":"CreateTaskPushNotificationConfig","params":{"taskId":"x","url":"http://127.0.0.1/"}}`, 200, `"code":-32003`, ""},
	{"5.4 UnsupportedOperationError", "POST", "", "", "1.0", `{"jsonrpc":"2.0","id":1,"method":"SubscribeToTask","params":{"id":"{id}"}}`, 200, `"code":-32004`, ""},
	{"5.4 ContentTypeNotSupportedError", "POST", "", "", "1.0", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"i","role":"ROLE_USER","parts":[{"url":"http://x"}]}}}`, 200, `"code":-32005`, ""},
	{"5.4 VersionNotSupportedError", "POST", "", "", "2.0", `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}`, 200, `"code":-32009`, ""},
	{"9.3 JSON-RPC: the version", "POST", "", "", "1.0", `{"jsonrpc":"1.0","id":1,"method":"GetTask"}`, 200, `"id":null,"error":{"code":-32600`, ""},
	{"9.3 JSON-RPC: an id", "POST", "", "", "1.0", `{"jsonrpc":"2.0","method":"GetTask"}`, 200, `"code":-32600`, ""},
	{"9.5 JSON-RPC: no JSON", "POST", "", "", "1.0", `{`, 200, `"code":-32700`, ""},
	{"9.5 JSON-RPC: no such method", "POST", "", "", "1.0", `{"jsonrpc":"2.0","id":1,"method":"Dance"}`, 200, `"code":-32601`, ""},
	{"9.5 JSON-RPC: parameters of another type", "POST", "", "", "1.0", `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":7}}`, 200, `"code":-32602`, ""},
	{"9.5 JSON-RPC: details have a type", "POST", "", "", "1.0", `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}`, 200, `"data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo"`, ""},
	{"9.4.8 GetExtendedAgentCard", "POST", "", "", "1.0", `{"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard"}`, 200, `"supportedInterfaces":[{`, `"preferredTransport"`},
	{"11.3.4 GET /extendedAgentCard", "GET", "/extendedAgentCard", "", "1.0", "", 200, `"signatures":[{`, ""},
	{"11.6 an error's body", "GET", "/tasks/nothing", "", "1.0", "", 404, `{"error":{"code":404,"status":"NOT_FOUND","message":`, ""},
	{"CORE-MULTI-001a a context that is made is told", "POST", "/message:send", "", "1.0", `{"message":{"messageId":"j","role":"ROLE_USER","parts":[{"data":{"skill":"echo","arguments":{}}}]}}`, 200, `,"contextId":"`, ""},
	{"CORE-MULTI-002a a context that is not taken", "POST", "/message:send", "", "1.0", `{"message":{"messageId":"k","contextId":"\u00e9","role":"ROLE_USER","parts":[{"data":{"skill":"echo","arguments":{}}}]}}`, 400, "contextId", `"task"`},
	{"CORE-HIST-003 historyLength 0 beside a message", "POST", "/message:send", "", "1.0", `{"message":{"messageId":"l","role":"ROLE_USER","parts":[{"data":{"skill":"echo","arguments":{}}}]},"configuration":{"historyLength":0}}`, 200, `"task"`, `"history"`},
	{"DM-TASK-001 a task has an ID and a status", "GET", "/tasks/{id}", "", "1.0", "", 200, `{"id":"{id}","contextId":"{id}","status":{"state":"TASK_STATE_COMPLETED"`, ""},
	{"DM-PART-001 a part has one content", "POST", "/message:send", "", "1.0", `{"message":{"messageId":"n","role":"ROLE_USER","parts":[{"text":"x","data":{}}]}}`, 400, "parts", `"task"`},
	{"DM-ART-001 an artifact has an ID and parts", "GET", "/tasks/{id}", "", "1.0", "", 200, `"artifacts":[{"artifactId":"result","name":"result","parts":[{`, ""},
	{"13.3 the extended card needs credentials", "GET", "/extendedAgentCard", "-", "1.0", "", 401, "", "skills"},
}

type mustRow struct {
	section       string
	verb, path    string
	token         string // "-" sends none, and "" the site's
	version, body string
	status        int
	has, hasNot   string
}

// TestMust tries what the specification has with MUST.
func TestMust(t *testing.T) {
	s := newSite(t)
	const base = "/a2a/agents/helper"
	_, made := s.Ask(t, "POST", base+"/message:send", adaptertest.SiteToken, `{"message":{"messageId":"first","role":"ROLE_USER","parts":[{"data":{"skill":"echo","arguments":{"a":1}}}]}}`, "A2A-Version", "1.0")
	_, rest, _ := strings.Cut(made, `{"task":{"id":"`)
	id, _, ok := strings.Cut(rest, `"`)
	if !ok {
		t.Fatal(made)
	}
	fill := strings.NewReplacer("{id}", id).Replace
	for _, m := range must {
		t.Run(m.section, func(t *testing.T) {
			token := m.token
			switch token {
			case "":
				token = adaptertest.SiteToken
			case "-":
				token = ""
			}
			var headers []string
			if m.version != "" {
				headers = []string{"A2A-Version", m.version}
			}
			res, text := s.Ask(t, m.verb, base+fill(m.path), token, fill(m.body), headers...)
			media := "application/json"
			if m.path != "" && m.version != "" && res.StatusCode == http.StatusOK {
				media = "application/a2a+json"
			}
			if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusUnauthorized && got != media && (m.version != "" || m.path == "") {
				t.Errorf("%s, want %s", got, media)
			}
			if res.StatusCode != m.status || !strings.Contains(text, fill(m.has)) || m.hasNot != "" && strings.Contains(text, m.hasNot) {
				t.Errorf("%d %.500s\nwant %d with %q and without %q", res.StatusCode, text, m.status, m.has, m.hasNot)
			}
		})
	}
}

// TestScope: a caller sees its own tasks only, by every method (section 13.1); others' tasks appear
// not to exist.
func TestScope(t *testing.T) {
	s := newSite(t)
	ann, _ := s.Token(t, "ann", "ask helper")
	bob, revoke := s.Token(t, "bob", "ask helper")
	const base, send = "/a2a/agents/helper", `{"message":{"messageId":"w","contextId":"ours","role":"ROLE_USER","parts":[{"data":{"skill":"wait"}}]},"configuration":{"returnImmediately":true}}`
	_, made := s.Ask(t, "POST", base+"/message:send", ann, send, "A2A-Version", "1.0")
	_, rest, _ := strings.Cut(made, `{"task":{"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	for _, q := range []struct{ verb, path, body string }{
		{"GET", "/tasks/", ""}, {"POST", "/tasks/:cancel", ""}, {"POST", "/tasks/:subscribe", ""},
		{"POST", "/message:send", `{"message":{"messageId":"x","taskId":"` + id + `","role":"ROLE_USER","parts":[{"text":"x"}]}}`},
	} {
		path := strings.Replace(q.path, "/tasks/", "/tasks/"+id, 1)
		if res, text := s.Ask(t, q.verb, base+path, bob, q.body, "A2A-Version", "1.0"); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s %s: %d %s", q.verb, path, res.StatusCode, text)
		}
	}
	if _, text := s.Ask(t, "GET", base+"/tasks?contextId=ours", bob, "", "A2A-Version", "1.0"); !strings.Contains(text, `"totalSize":0`) {
		t.Error(text)
	}
	// The same message of another caller is another one, and asks for a task of its own.
	_, second := s.Ask(t, "POST", base+"/message:send", bob, send, "A2A-Version", "1.0")
	if strings.Contains(second, id) || !strings.Contains(second, `{"task":{"id":"`) {
		t.Error(second)
	}
	revoke()
	if res, text := s.Ask(t, "POST", base+"/message:send", bob, send, "A2A-Version", "1.0"); res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusForbidden {
		t.Errorf("%d %s", res.StatusCode, text)
	}
	// The things have no tasks of agents.
	if res, text := s.Ask(t, "GET", "/a2a/tasks/"+id, ann, "", "A2A-Version", "1.0"); res.StatusCode != http.StatusNotFound {
		t.Errorf("%d %s", res.StatusCode, text)
	}
	// A chain of sites that is too long is refused before anything is done.
	long := strings.Replace(send, `"messageId":"w"`, `"messageId":"v","metadata":{"agentsite/via":["a","b","c","d","e"]}`, 1)
	if res, text := s.Ask(t, "POST", base+"/message:send", ann, long, "A2A-Version", "1.0"); res.StatusCode != http.StatusForbidden {
		t.Errorf("%d %s", res.StatusCode, text)
	}
}
