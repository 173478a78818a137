package a2a_test

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/transport/adapter/adaptertest"
)

// tck are the requirements with MUST of the protocol's own test kit, a2aproject/a2a-tck, branch
// 1.0-dev at 357c4a87afa2818731590647cccbea31c31733a2, and the tests of each here. These are a row
// of must ("row " and the beginning of its name), tests, or e2e: TestA2A of
// cmd/internal/e2e/protocols with the protocol's clients. "not: " precedes the reason why there is
// none. The kit itself needs an agent that acts by its scenarios, and Python with Debian's packages.
var tck = map[string]string{
	"CARD-DISC-001":           "TestCards",
	"CARD-PROTO-001":          "TestCards e2e",
	"CARD-PROTO-002":          "TestThings e2e", // whose clients go by the card
	"CARD-STRUCT-001":         "TestThings e2e", // asked for as 1.0; without A2A-Version a card is of both versions, which the schema of 1.0 refuses
	"CARD-EXT-001":            "row 13.3 the extended card needs credentials",
	"CARD-EXT-002":            "not: there always is an extended card",
	"CARD-SIGN-001":           "TestCards e2e",
	"CARD-SIGN-002":           "TestCards e2e",
	"CARD-SIGN-003":           "TestCards e2e",
	"CARD-SIGN-004":           "not: of clients; ours goes by the key that the owner wrote, whose end is that line's",
	"AUTH-TLS-001":            "not: HTTP listens on loopback alone, and HTTPS for others: cmd/internal/e2e and node/config",
	"AUTH-SERVER-002":         "row 3.3.2 credentials",
	"AUTH-INTASK-001":         "TestApproval",
	"AUTH-INTASK-002":         "TestApproval",
	"AUTH-INTASK-003":         "TestApproval",
	"AUTH-INTASK-004":         "TestApproval", // the owner's word comes by the owner's channel
	"AUTH-SCOPE-001":          "TestScope TestPushBound TestStreamEnds",
	"AUTH-SCOPE-002":          "TestScope TestApproval",
	"AUTH-SCOPE-003":          "TestScope TestPushBound TestCards",
	"GRPC-SVC-001":            noGRPC,
	"GRPC-SVC-002":            noGRPC,
	"GRPC-SVC-003":            noGRPC,
	"GRPC-META-001":           noGRPC,
	"GRPC-ERR-001":            noGRPC,
	"GRPC-ERR-002":            noGRPC,
	"GRPC-ERR-003":            noGRPC,
	"HTTP_JSON-URL-001":       "TestTasks TestStream TestPush e2e",
	"HTTP_JSON-URL-002":       "TestTasks TestPush e2e",
	"HTTP_JSON-SVC-001":       "TestMust", // application/a2a+json, as section 11.1 of the specification has it since
	"HTTP_JSON-SVC-002":       "row 3.6.2 a version that is not supported",
	"HTTP_JSON-QP-001":        "row 3.3.2 parameters are validated: pageSize",
	"HTTP_JSON-ERR-001":       "row 11.6 an error's body",
	"HTTP_JSON-ERR-002":       "row 3.1.3 GetTask: TaskNotFoundError",
	"HTTP_JSON-STATUS-001":    "TestMust", // 400 for content types, as the specification's table has since
	"HTTP_JSON-SSE-001":       "TestStreamEnds TestStream",
	"JSONRPC-FMT-001":         "row 9.3 JSON-RPC",
	"JSONRPC-FMT-002":         "TestMust",
	"JSONRPC-SVC-001":         "row 3.6.2 the methods of a version",
	"JSONRPC-SVC-002":         "row 5.4 VersionNotSupportedError",
	"JSONRPC-ERR-001":         "row 9.5 JSON-RPC: details have a type",
	"JSONRPC-ERR-002":         "row 5.4 TaskNotFoundError",
	"JSONRPC-ERR-003":         "row 9.5 JSON-RPC: details have a type",
	"JSONRPC-SSE-001":         "TestIDs TestStream",
	"JSONRPC-SSE-002":         "row 5.4",
	"CORE-SEND-001":           "TestThings TestTasks",
	"CORE-SEND-002":           "row 3.1.1 a message to an ended task",
	"CORE-SEND-003":           "row 3.1.1 a file is no content for this agent",
	"CORE-STREAM-001":         "TestStream",
	"CORE-STREAM-002":         "TestThings",
	"CORE-STREAM-003":         "TestStream TestStreams",
	"CORE-GET-001":            "row 5.5 enumerations",
	"CORE-GET-002":            "row 3.1.3 GetTask: TaskNotFoundError",
	"CORE-LIST-001":           "TestScope",
	"CORE-LIST-002":           "TestTasks",
	"CORE-LIST-003":           "TestListOrder",
	"CORE-LIST-004":           "row 3.1.4 ListTasks: nextPageToken",
	"CORE-LIST-005":           "row 3.1.4 ListTasks: artifacts are left out",
	"CORE-CANCEL-001":         "TestTasks",
	"CORE-CANCEL-002":         "row 5.4 TaskNotCancelableError",
	"CORE-CANCEL-003":         "TestErrors",
	"CORE-EXECUTION-MODE-001": "TestWaits",
	"CORE-EXECUTION-MODE-002": "TestTasks",
	"CORE-ERR-001":            "TestErrors",
	"CORE-ERR-002":            "row 3.3.2 parameters are validated",
	"CORE-CAP-001":            "row 3.3.4",
	"CORE-CAP-002":            "not: every agent here streams",
	"CORE-CAP-003":            "not: there always is an extended card",
	"CORE-CAP-004":            "not: no extension here is required",
	"CORE-MULTI-001a":         "row CORE-MULTI-001a",
	"CORE-MULTI-002a":         "row CORE-MULTI-002a",
	"CORE-MULTI-003":          "TestScope",
	"CORE-MULTI-004":          "row 3.4.2 a taskId that there is not",
	"CORE-MULTI-005":          "TestApproval",
	"CORE-MULTI-006":          "row 3.4.3 a contextId that is not the task's",
	"CORE-HIST-002":           "row 3.2.4 historyLength 0",
	"DM-TASK-001":             "row DM-TASK-001",
	"DM-TASK-002":             "row 3.3.2 parameters are validated: status",
	"DM-MSG-001":              "row 3.3.2 parameters are validated: messageId",
	"DM-MSG-002":              "row 3.3.2 parameters are validated: role",
	"DM-PART-001":             "row DM-PART-001",
	"DM-ART-001":              "row DM-ART-001",
	"DM-STATUS-001":           "row DM-TASK-001",
	"DM-SERIAL-001":           "row 5.5 enumerations",
	"DM-SERIAL-002":           "row 5.5 enumerations",
	"DM-SERIAL-003":           "row 5.6.1 times are in UTC",
	"DM-SERIAL-004":           "row 3.3.2 parameters are validated: parts",
	"BIND-EQUIV-001":          "TestThings TestTasks TestStream TestPush e2e",
	"BIND-EQUIV-002":          "TestThings TestTasks TestStream TestPush e2e",
	"BIND-EQUIV-003":          "TestErrors",
	"BIND-EQUIV-004":          "TestThings e2e",
	"BIND-FIELD-001":          "TestCards e2e",
	"PUSH-CREATE-001":         "TestPush",
	"PUSH-CREATE-002":         "TestPush TestPushRestart",
	"PUSH-GET-001":            "TestPush",
	"PUSH-GET-002":            "TestPush TestPushBound",
	"PUSH-LIST-001":           "TestPush TestPushBound",
	"PUSH-DEL-001":            "TestPush",
	"PUSH-DEL-002":            "TestPush",
	"PUSH-DELIVER-001":        "TestPush e2e",
	"PUSH-DELIVER-002":        "TestPush TestPushNames",
	"PUSH-DELIVER-003":        "TestPush",
	"STREAM-ORDER-001":        "TestStream TestStreams",
	"STREAM-ORDER-002":        "TestStreams",
	"STREAM-ORDER-003":        "TestStreams", // what changes while a reader is slow is told to it once
	"STREAM-ORDER-004":        "TestStreams",
	"STREAM-SUB-001":          "TestStreams",
	"STREAM-SUB-002":          "TestStreams",
	"STREAM-SUB-003":          "row 3.1.6 SubscribeToTask: an ended task",
	"STREAM-SUB-004":          "TestErrors",
	"VER-CLIENT-001":          "not: of clients; transport/a2a/client sends it",
	"VER-CLIENT-002":          "row 3.6 patch numbers are not considered",
	"VER-SERVER-001":          "row 3.6.2 the methods of a version",
	"VER-SERVER-002":          "row 3.6.2 a version that is not supported",
	"VER-SERVER-003":          "row 3.6.2 no version is 0.3",
}

const noGRPC = "not: there is no gRPC here, and no card that offers it"

// TestTCK: each requirement of the kit is tried by what there is, or has a reason.
func TestTCK(t *testing.T) {
	if len(tck) != 114 {
		t.Errorf("%d requirements; the kit has 114", len(tck))
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(b)
	}
	var tests []string
	for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing`).FindAllStringSubmatch(text.String(), -1) {
		tests = append(tests, m[1])
	}
	for id, by := range tck {
		row, isRow := strings.CutPrefix(by, "row ")
		switch {
		case strings.HasPrefix(by, "not: "):
		case isRow:
			if !slices.ContainsFunc(must, func(m mustRow) bool { return strings.HasPrefix(m.section, row) }) {
				t.Errorf("%s: there is no row %q", id, row)
			}
		default:
			for name := range strings.FieldsSeq(by) {
				if name != "e2e" && !slices.Contains(tests, name) {
					t.Errorf("%s: there is no %s", id, name)
				}
			}
		}
	}
}

// TestStreams: all streams of a task are told the same, beginning with the task, and the end of one
// is not that of another.
func TestStreams(t *testing.T) {
	s := newSite(t)
	id := waiting(t, s, adaptertest.SiteToken, "m", "")
	path := "/a2a/agents/helper/tasks/" + id
	eventually(t, "the task is worked on", func() bool {
		_, text := s.Ask(t, "GET", path, adaptertest.SiteToken, "", "A2A-Version", "1.0")
		return strings.Contains(text, "TASK_STATE_WORKING") && strings.Contains(text, "waiting")
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	open := func(ctx context.Context) *bufio.Scanner {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, "POST", s.URL+path+":subscribe", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+adaptertest.SiteToken)
		r.Header.Set("A2A-Version", "1.0")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return bufio.NewScanner(res.Body)
	}
	next := func(lines *bufio.Scanner) string {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return text
			}
		}
		return ""
	}
	leaves, leave := context.WithCancel(ctx)
	first, second, third := open(ctx), open(ctx), open(leaves)
	for _, lines := range []*bufio.Scanner{first, second, third} {
		if text := next(lines); !strings.HasPrefix(text, `{"task":{"id":"`+id) {
			t.Error(text)
		}
	}
	leave()
	next(third)
	s.Ask(t, "POST", path+":cancel", adaptertest.SiteToken, "", "A2A-Version", "1.0")
	a, b := next(first), next(second)
	if a != b || !strings.Contains(a, `{"statusUpdate":{"taskId":"`+id) || !strings.Contains(a, "TASK_STATE_CANCELED") {
		t.Error(a, b)
	}
	if a, b := next(first), next(second); a != "" || b != "" {
		t.Error("a stream does not end with its task", a, b)
	}
}

// TestListOrder: the task that changed last is the first of a list.
func TestListOrder(t *testing.T) {
	s := newSite(t)
	first := waiting(t, s, adaptertest.SiteToken, "first", "")
	tick := time.NewTimer(1100 * time.Millisecond) // times of the tests' host are in seconds
	<-tick.C
	second := waiting(t, s, adaptertest.SiteToken, "second", "")
	order := func() string {
		_, text := s.Ask(t, "GET", "/a2a/agents/helper/tasks", adaptertest.SiteToken, "", "A2A-Version", "1.0")
		if strings.Index(text, first) < strings.Index(text, second) {
			return first
		}
		return second
	}
	if order() != second {
		t.Error("the newest is not the first")
	}
	tick.Reset(1100 * time.Millisecond)
	<-tick.C
	s.Ask(t, "POST", "/a2a/agents/helper/tasks/"+first+":cancel", adaptertest.SiteToken, "", "A2A-Version", "1.0")
	if order() != first {
		t.Error("what changed last is not the first")
	}
}
