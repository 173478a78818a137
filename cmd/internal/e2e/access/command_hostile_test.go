//go:build e2e

package access

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/peer"
	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/node/logs"
	"agentsite/node/push"
	"agentsite/node/rollback"
	"agentsite/node/state/backup"
	"agentsite/node/update/remote"
	ownerapi "agentsite/transport/owner"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// venom is in every text of a liar's answers: characters that a shell runs, a terminal interprets,
// and a reader does not see.
const venom = "'; touch PWNED; `touch PWNED` $(touch PWNED) \x1b[31m\u202e\u0085\u200b\n\"; touch PWNED; \""

// liar is a site that somebody owns, and that lies in every field of what it answers.
type liar struct {
	how    string
	key    identity.Key
	victim identity.ID // whom it says that it is

	mu     sync.Mutex
	asked  int
	signed []*access.Grant
}

// How a liar answers.
const (
	asAnother = "as another site"
	asItself  = "with its own key" // and all else is a lie
	refusing  = "with refusals"
	failing   = "with failures of tools"
	mistyped  = "with something else"
	endless   = "without an end"
	silent    = "not at all"
	stuck     = "only when a client connects"
)

func (l *liar) serve(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     jsontext.Value `json:"id"`
		Method string         `json:"method"`
		Params struct {
			Name  string `json:"name"`
			Grant []byte `json:"grant"`
		} `json:"params"`
	}
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	l.asked++
	asked := l.asked
	if g, err := access.ParseGrant(m.Params.Grant); err == nil {
		l.signed = append(l.signed, g)
	}
	l.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch how := l.how; {
	case how == silent, how == stuck && m.Method != string(acts.TimeAct):
		<-r.Context().Done()
	case how == endless:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"x":"`, m.ID)
		for {
			if _, err := io.WriteString(w, strings.Repeat("A", 1<<10)); err != nil {
				return
			}
		}
	case how == refusing && m.Method != string(acts.TimeAct):
		w.WriteHeader(http.StatusForbidden)
		json.MarshalWrite(w, map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": 403, "message": "run agentsite `touch PWNED`" + venom, "data": venom}})
	case m.Method == "subscriptions/listen":
		w.Header().Set("Content-Type", "text/event-stream")
		for _, n := range []string{`acknowledged`, `updated`, `updated`} {
			method, uri := "notifications/subscriptions/"+n, ""
			if n == "updated" {
				method, uri = "notifications/resources/updated", `,"uri":"agentsite:///a/t"`
			}
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":%q,\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":%s}%s}}\n\n", method, m.ID, uri)
			http.NewResponseController(w).Flush()
		}
		time.Sleep(100 * time.Millisecond) // as a site that is gone soon
	default:
		var result any = []any{1, venom, nil}
		if how != mistyped {
			result = l.lie(m.Method, m.Params.Name, asked)
		}
		json.MarshalWrite(w, map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
	}
}

// lie returns the answer of a method, with longer points and texts each time.
func (l *liar) lie(method, tool string, asked int) any {
	type o = map[string]any
	soon := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	switch method {
	case string(acts.AccessAct):
		says := l.key.ID()
		if l.how == asAnother {
			says = l.victim
		}
		return o{
			"site": says.String(), "name": venom, "addresses": []string{venom, "/ip4/192.0.2.1/tcp/1" + venom, "192.0.2.1:1" + venom, "/ip4/192.0.2.1/tcp/1"}, "url": venom,
			"time": time.Now().UTC(), "owners": []o{{"did": venom, "name": venom}}, "proof": make([]byte, 64),
			"grants": []o{
				{"id": venom, "to": venom, "may": []string{"read *"}, "until": soon},
				{"id": venom, "to": l.victim.String(), "may": []string{"read *'; touch PWNED; '"}, "until": soon},
				{"id": venom, "to": l.victim.String(), "name": venom, "may": []string{"read *"}, "until": soon},
				{"id": venom, "token": venom, "may": []string{venom}, "until": soon},
			},
		}
	case string(acts.TokenAct):
		return o{"id": venom, "token": venom, "until": soon, "new_owner": venom}
	case string(acts.RequestsAct):
		wish := func(handle, token, may string) o {
			return o{"handle": handle, "token": token, "client": venom, "returns_to": venom, "who": venom, "tool": venom, "arguments": o{"x": venom}, "times": -1, "seconds_ago": 1e300, "may": may}
		}
		const handle = "3AJ2TS5ZWQ4C7PLM6XKD2F7V5E"
		return o{
			"requests": []o{{"handle": venom, "who": venom, "tool": venom, "arguments": o{"x": venom}, "seconds_left": 1e300}},
			"sign_ins": []o{
				{"handle": venom, "client": venom, "returns_to": venom, "local": true, "asks": []string{venom}, "from": venom, "replaces": venom, "seconds_left": 1e300},
				{"handle": "ABCD-EFGH", "client": venom, "returns_to": venom, "asks": []string{venom}, "from": venom, "replaces": "x; touch PWNED #"},
				{"handle": "ABCD-EFGI", "client": venom, "returns_to": venom, "asks": []string{venom}, "from": venom},
			},
			"wishes": []o{wish(venom, venom, venom), wish(handle, "claude", "read *'; touch PWNED; '"), wish(handle, "x; touch PWNED", "read *"), wish(handle, "claude", "set *")},
		}
	case string(push.PhonesAct):
		return o{"phones": []o{{"did": venom, "name": venom, "allowed": true, "at": venom}, {"did": venom}}}
	case string(acts.RecoveryAct):
		return o{"code": venom}
	case string(acts.TimeAct), string(ownerapi.PresentMethod):
		return o{"at": []string{venom, "/ip4/192.0.2.1/tcp/1" + venom}}
	case string(acts.FindAct):
		return o{"found": []o{{"name": venom, "did": venom, "urls": []string{venom}, "known_as": venom}}}
	case string(ownerapi.ChallengeMethod):
		return o{"challenge": make([]byte, 32)}
	case string(ownerapi.ProveMethod):
		return o{"answer": base64.StdEncoding.EncodeToString([]byte(venom)), "name": venom}
	case "tools/list":
		return o{"resultType": "complete", "tools": []o{{"name": venom, "title": venom, "description": venom, "inputSchema": o{"properties": o{venom: o{}}, "required": []string{venom}}}}}
	case string(acts.AgentsAct):
		return o{"agents": []o{{"name": venom, "kind": venom, "principal": venom, "description": venom, "may": venom, "reads": []string{venom}, "moves": []string{venom}, "author": venom, "definition": venom, "bound": o{venom: venom}, "wish": venom, "state": venom, "says": venom, "last_error": venom, "failed_ago": -1e300}}}
	case string(acts.OfferAct):
		return o{"digest": "x" + venom, "tools": []o{{"name": venom, "as": venom, "state": "new", "why": venom, "offered": venom, "accepted": venom}}, "others": []string{venom}}
	case string(acts.ExportAgentAct):
		return o{"name": "boil", "kind": "rule", "needs": []o{{"name": "heater", "kind": "switch"}}, "definition": "every: 1m\nhold: { need/heater: on }", "may": "set need/heater"}
	case string(acts.SharedAgentsAct):
		return o{"shared": []o{
			{"id": venom, "name": venom, "kind": venom, "author": venom, "published": true, "words": []string{
				venom,
			}, "version": 1},
			{"id": venom, "name": "boil", "kind": venom, "author": venom, "published": true},
		}, "imported": []o{
			{"name": venom, "kind": venom, "author": "did:key:" + venom, "own_name": "boil", "definition": venom, "wish": venom, "asks": venom, "replaces": venom},
		}}
	case string(acts.ShareAgentAct):
		return o{"id": venom, "name": venom, "kind": venom, "author": venom}
	case string(acts.AcceptAgentAct):
		return o{"name": venom, "may": venom, "kind": venom, "author": venom}
	case string(acts.ConfigurationAct), string(acts.ConfigureAct):
		text := "site: { name: x } # " + venom
		if l.how == failing { // at tools: this one can be read
			text = "site: { name: x }\ndevices: {} # '; touch PWNED; `touch PWNED` \u202e\u200b" + strings.Repeat(
				"x", 1000,
			) + "\n"
		}
		return o{"file": venom, "text": text, "digest": venom}
	case string(acts.CheckAct):
		return o{"mistakes": []o{{"line": asked, "column": -1, "says": venom}}[:asked%2], "warnings": []string{venom}}
	case string(acts.DriversAct):
		return o{"drivers": []o{{"driver": venom, "is": venom, "entry": venom}}}
	case string(acts.ScanAct):
		return o{"found": []o{{"where": venom, "what": venom, "confidence": venom, "says": venom, "drafts": []o{{"device": venom, "set": []o{{"key": venom, "value": venom}}}}}}, "trouble": []string{venom}}
	case string(acts.DraftAct):
		return o{"text": venom, "digest": venom, "mistakes": []o{{"line": 1, "says": venom}}, "warnings": []string{venom}}
	case string(acts.SchemaAct), string(acts.PinoutAct), string(acts.DoctorAct):
		return o{"schema": venom, "board": venom, "findings": []o{
			{"severity": venom, "says": strings.Repeat("f", 1<<16) + venom, "do": venom},
		}}
	case string(remote.VersionAct), string(remote.UpdateAct):
		return o{"version": venom, "proven": true, "failed": venom, "offered": venom, "newer": true, "problems": []string{
			venom,
		},
			"work": o{
				"version": venom, "state": []string{"failed", venom}[asked%2], "error": strings.Repeat("e", 1<<16) + venom,
			}}
	case string(rollback.TrialAct), string(rollback.ConfirmAct):
		return o{"state": venom, "because": venom, "digest": venom}
	case string(backup.ExportAct):
		return o{"sealed": []byte(venom)}
	case string(acts.PublicAct):
		return o{"url": venom, "cname": venom, "caa": venom, "certificate": venom, "problems": []string{venom}, "alarms": []string{venom}, "log_error": venom,
			"sign_ins": []o{{"at": soon, "step": venom, "from": venom, "client": venom, "error": venom}},
			"relays":   []o{{"relay": venom, "why": venom, "steps": []o{{"step": venom, "error": venom, "do": venom}}}}}
	case string(logs.ReadAct):
		return o{"run": venom, "last": 1, "lost": true, "lines": []o{
			{"seq": 1, "time": "2026-01-01T00:00:00Z", "level": venom, "text": "msg=\"" + venom},
		}}
	case string(acts.JournalAct):
		return o{"entries": []o{{"seq": 1, "time": "2026-01-01T00:00:00Z", "who": venom, "via": []string{venom}, "tool": venom, "arguments": venom, "key": venom, "outcome": venom, "says": venom, "result": venom, "count": -1}},
			"first": 9, "last": 1, "hash": "AAAA"}
	case "tasks/get", "tasks/cancel", "tasks/update":
		return o{"resultType": "complete", "_meta": o{"agentsite/task": hostileTask(asked)}}
	case "tools/call":
		if tool == "ask_agent" {
			return o{"resultType": "complete", "content": []o{{"type": "text", "text": venom}}, "_meta": o{"agentsite/task": hostileTask(asked)}, "structuredContent": o{
				"agents": []o{{"name": venom, "description": venom, "skills": []o{{"id": venom, "description": venom, "tags": []string{venom}, "seconds": 1e300}}}}, "tasks": []o{hostileTask(asked)},
			}}
		}
		return l.result(tool, strings.Repeat("t", asked)+venom)
	}
	return o{"x": venom}
}

// hostileTask is a task that has ended once it was asked for often.
func hostileTask(asked int) map[string]any {
	type o = map[string]any
	t := o{"id": "x" + venom, "agent": venom, "skill": venom, "state": "working", "says": venom, "partial": strings.Repeat("p", asked) + venom, "asker": venom, "created": venom, "changed": venom, "text": venom,
		"steps": []o{{"does": venom, "time": venom, "outcome": "done", "says": venom}}}
	if asked > 3 {
		t["state"], t["result"] = "completed", o{"text": "hi\n  [site] 10:00:00 stopped" + venom, "receipt": []o{{"time": venom, "does": venom, "outcome": venom, "says": venom}}, "foreign": venom, "note": venom}
	}
	return t
}

func (l *liar) result(tool, long string) any {
	type o = map[string]any
	value := o{
		"points": []o{
			{"point": "a/t", "kind": "switch", "unit": venom, "description": venom, "values": []string{venom}, "safe": venom, "max_seconds": -1e300, "limits": venom, "confirm": venom},
			{"point": long, "kind": venom, "unit": venom, "description": venom, "safe": o{"x": venom}, "min": 1e300, "max": -1e300},
		},
		"readings": []o{{"point": long, "value": venom, "unit": venom, "time": venom, "age_seconds": -1e300, "quality": venom, "why": venom}, {"point": "a/t", "value": 1e300, "unit": "s", "quality": "good"}},
		"point":    long, "unit": "s", "step_seconds": -1, "min": -1e300, "steps": []o{{"time": "0001-01-01T00:00:00Z", "min": 1e300}},
		"output": long, "value": venom, "going_to": venom, "safe": venom, "seconds_left": 1e300, "display": venom, "text": venom,
		"site": venom, "version": venom, "uptime_seconds": -1, "emergency_stop": true,
		"outputs": []o{{"output": long, "value": venom}}, "outputs_away_from_safe": []o{{"output": long, "seconds_left": 1e300, "fault": venom}},
	}
	res := o{"resultType": "complete", "structuredContent": value, "content": []o{{"type": "text", "text": venom}, {"type": "image", "mimeType": venom, "data": "AAAA"}}}
	if l.how == failing {
		res = o{"resultType": "complete", "isError": true, "content": []o{{"type": "text", "text": "run agentsite `touch PWNED`" + venom}}, "_meta": o{"agentsite/fault": venom}}
	}
	return res
}

// commands are the program's commands with arguments, against a site. KEY stands for a key, CSV for a
// file, OUT for a file that is not there. TestCommandsListed compares them with the program.
var commands = [][]string{
	{"points"}, {"read"}, {"read", "a/t"}, {"read", "--watch"}, {"history", "a/t"}, {"set", "a/t", "on"}, {"set", "a/t", "on", "--take-over"}, {"set", "a/t", "safe"},
	{"status"}, {"status", "--json"}, {"logs"}, {"logs", "--json"}, {"stop"}, {"reset"}, {"reload"}, {"config", "trial"},
	{"approve"}, {"approve", "--watch"}, {"approve", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}, {"approve", "--deny", "X"},
	{"approve", "ABCD-EFGH", "--may", "read *"}, {"approve", "ABCD-EFGH"}, {"approve", "ABCD-EFGI", "--may", "read *"}, {"approve", "ABCD-EFGH", "--deny"},
	{"tools"}, {"call", "read_points"}, {"ping"}, {"find"},
	{"grant", "KEY", "read *"}, {"grant", "phone"}, {"grants"}, {"token", "add", "kitchen", "read *"}, {"token", "list"}, {"token", "revoke", "kitchen"},
	{"token", "change", "kitchen", "read *"}, {"public"}, {"revoke", "KEY"},
	{"owners"}, {"owners", "add", "KEY"}, {"owners", "remove", "KEY"}, {"owners", "recovery"}, {"owners", "recover", "0000-0000-0000-0000-0000-0000-0000-0000"},
	{"clock"}, {"clock", "--set"}, {"agents", "allow"}, {"identity", "--certificate"},
	{"__complete", "read", ""}, {"__complete", "set", ""}, {"__complete", "call", ""}, {"__complete", "revoke", ""}, {"__complete", "approve", ""},
	{"claim", "ADDRESS", "--name", "other"},
	{"why", "a/t"}, {"rules"}, {"rules", "pause", "x"}, {"rules", "resume", "x"}, {"rules", "try", "x"}, {"journal"}, {"journal", "--since", "1h"}, {"journal", "--verify"}, {"config", "check", "CSV"}, {"config"}, {"config", "replace", "CSV"}, {"config", "replace", "CSV", "--digest", "00"}, {"add", "lamp", "--driver", "relay", "--set", "pin=GPIO17", "--set", "safe=off", "--yes"}, {"grants", "--json"}, {"agents"}, {"agents", "forbid", "assistant"},
	{"agents", "tools", "weather"}, {"agents", "export", "frost", "-o", "OUT"}, {"agents", "try", "x"}, {"agents", "accept", "x", "--may", "read *"}, {"agents", "remove", "x"}, {"agents", "pause", "x"},
	{"agents", "resume", "x"}, {"agents", "share"}, {"agents", "unshare", "sha256:00"}, {"agents", "import", "CSV"}, {"agents", "show", "gardener"}, {"agents", "find"},
	{
		"agents", "publish",
	}, {"agents", "publish", "boil"}, {"agents", "publish", "boil", "--dry-run"}, {"agents", "unpublish", "boil"},
	{"agents", "search", "boil"}, {"agents", "install", "boil"}, {"agents", "updates"},
	{"ask"}, {"ask", "gardener", "hi"}, {"ask", "gardener", "hi", "--no-wait"}, {"chat", "gardener", "hi"}, {"sites", "connect", "x"},
	{"tasks"}, {"tasks", "show", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}, {"tasks", "watch", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}, {"tasks", "cancel", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}, {"tasks", "answer", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "yes"},
	{"__complete", "agents", "accept", ""}, {"__complete", "ask", ""}, {"__complete", "tasks", "watch", ""},
	{"notify", "test"}, {"notify", "phones"}, {"notify", "phones", "--json"}, {"notify", "allow", "KEY"},
	{"notify", "forget", "x"},
	{"history", "a/t", "b/t"}, {"history", "a/t", "--csv"}, {"history", "import", "CSV", "--as", "a/t"},
}

// alone are the program's commands that a site answers nothing to: they are about this machine, the
// user's own files or another site. connect is in TestConnectHostile, and
// what open shows in package page.
var alone = []string{
	"accept", "backup", "check", "completion", "completion bash", "completion fish", "completion powershell", "completion zsh", "connect", "console", "delegate", "demo", "discover", "doctor", "drivers", "help", "llm", "llm check",
	"open", "pinout", "prepare", "realm", "realm join", "realm leave", "realm list", "realm new", "relay", "restore", "run", "safe", "scan", "schema", "sites", "sites forget", "token", "update", "version",
	"board", "board report", "sim", "sim fault", "sim find", "sim list", "sim lose", "sim press", "sim set", "simulate", "sites tag", "sites untag",
}

// TestCommandsListed: each command of the program is among commands or alone.
func TestCommandsListed(t *testing.T) {
	program := harness.Need(t, "the program", harness.Program)
	var walk func(words []string)
	walk = func(words []string) {
		cmd := exec.Command(program, append(append([]string{"__complete"}, words...), "")...)
		cmd.Env = []string{"HOME=" + t.TempDir()}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(words, err)
		}
		for line := range strings.Lines(string(out)) {
			name, _, described := strings.Cut(line, "\t")
			sub := append(slices.Clone(words), name)
			if !described || len(words) > 0 && words[0] == "help" || exec.Command(program, append([]string{"help"}, sub...)...).Run() != nil {
				continue // an argument, and no command
			}
			listed := slices.ContainsFunc(slices.Concat(
				commands, fleetCommands,
			), func(c []string) bool { return len(c) >= len(sub) && slices.Equal(c[:len(sub)], sub) })
			if name := strings.Join(sub, " "); !listed && !slices.Contains(alone, name) {
				t.Errorf("%q is tried against no hostile site: add it to commands, or to alone", sub)
			}
			walk(sub)
		}
	}
	walk(nil)
}

// signs are the commands that sign something.
var signs = []string{"grant", "token", "approve", "agents"}

// watches go on until somebody ends them.
var watches = []string{"read --watch", "approve --watch"}

// TestCommandsHostile runs the whole command line against a compromised site that its user owns.
// Nothing is signed for another site, and no output has text of the site that a shell would execute
// or a terminal interpret. Nothing takes longer than one answer may.
func TestCommandsHostile(t *testing.T) {
	victim := identity.New()
	some := func(all [][]string, n int) [][]string {
		if os.Getenv("SOAK") != "" {
			return all
		}
		return all[:n]
	}
	slow := [][]string{{"points"}, {"grant", "KEY", "read *"}, {"stop"}}
	for how, words := range map[string][][]string{
		asAnother: commands, asItself: commands, refusing: commands, failing: commands, mistyped: commands,
		endless: append(slow, some(commands, 4)...), silent: append(slow, some(commands, 0)...),
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			l := &liar{how: how, key: identity.New(), victim: victim.ID()}
			at := harness.ServeAs(t, l.key, l.serve)
			for i, w := range words {
				t.Run(strings.Join(w, " "), func(t *testing.T) {
					t.Parallel()
					for _, asJSON := range []bool{i%2 == 0, i%2 != 0}[:1+min(len(os.Getenv("SOAK")), 1)] {
						l.against(t, at, w, asJSON)
					}
				})
			}
		})
	}
}

// against runs one command against the liar, and returns what it shows.
func (l *liar) against(t *testing.T, at string, words []string, asJSON bool) string {
	t.Helper()
	me := harness.NewPerson(t)
	me.Key(t)
	file := filepath.Join(me.Folder, "agentsite", "owner", "sites.json")
	known := []peer.Contact{{Name: "evil", DID: l.key.ID().String(), Addresses: []string{at}, Owner: true}, {Name: "boiler", DID: l.victim.String(), Addresses: []string{"127.0.0.1:1"}, Owner: true}}
	text, err := json.Marshal(known)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	args := slices.Clone(words)
	for i, w := range args {
		switch w {
		case "KEY":
			args[i] = l.victim.String()
		case "HOLDER":
			args[i] = identity.New().ID().String()
		case "OUT":
			args[i] = filepath.Join(me.Folder, "out")
		case "CSV":
			args[i] = filepath.Join(me.Folder, "past.csv")
			if err := os.WriteFile(args[i], []byte("time,value\n2026-01-01T00:00:00Z,1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		case "YAML":
			args[i] = filepath.Join(me.Folder, "site.yaml")
			if err := os.WriteFile(args[i], []byte("site: { name: shed } # a passphrase\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		case "ADDRESS":
			args[i] = access.Invitation{Site: l.key.ID(), Addresses: []string{at}, Secret: access.ClaimSecret{1}}.String()
		}
	}
	if words[0] != "claim" && words[0] != "fleet" {
		args = append([]string{"--site", "evil"}, args...)
	}
	if asJSON && words[0] != "__complete" {
		args = append(args, "--json")
	}
	cmd := exec.Command(harness.Need(t, "the program", harness.Program), args...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+me.Folder, "XDG_STATE_HOME="+me.Folder)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(watches, strings.Join(words, " ")) {
		end := time.AfterFunc(3*time.Second, func() { cmd.Process.Signal(os.Interrupt) })
		defer end.Stop()
	}
	late := time.AfterFunc(2*time.Minute, func() { cmd.Process.Signal(syscall.SIGQUIT) })
	defer late.Stop()
	err = cmd.Wait()
	took := time.Since(begun)
	var ended *exec.ExitError
	if err != nil && (!errors.As(err, &ended) || ended.ExitCode() < 1 || ended.ExitCode() > 8) {
		t.Errorf("it ends with %v\n%s", err, out.String())
	}
	if took > 65*time.Second {
		t.Errorf("it took %v", took)
	}
	said := out.String()
	if i := strings.IndexFunc(said, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) || r == '\u2028'
	}); i >= 0 {
		t.Errorf("it shows %q", said[max(0, i-60):min(len(said), i+20)])
	}
	pasted(t, said)
	if _, err := os.Stat(filepath.Join(me.Folder, "out")); err == nil && words[0] != "fleet" {
		t.Error("another agent than the one that was asked for was signed")
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.signed {
		for _, b := range g.Blocks {
			if b.Node != l.key.ID() {
				t.Errorf("a grant was signed for %v", b.Node)
			}
		}
	}
	if l.how == asAnother && slices.Contains(signs[:3], words[0]) && slices.Contains(words, "read *") && err == nil {
		t.Errorf("a site that says it is another was taken for itself:\n%s", said)
	}
	now, err := os.ReadFile(file)
	var after []peer.Contact
	if err == nil {
		err = json.Unmarshal(now, &after)
	}
	if err != nil || len(after) < 2 || after[0].DID != known[0].DID || after[1].DID != known[1].DID || strings.Contains(string(now), "touch") {
		t.Errorf("what is known of sites became %s, %v", now, err)
	}
	return said
}

// pasted puts each command that is suggested into a shell.
func pasted(t *testing.T, said string) {
	t.Helper()
	dir := t.TempDir()
	for line := range strings.Lines(said) {
		ours, _, _ := strings.Cut(line, " says: ")
		_, suggested, there := strings.Cut(ours, "agentsite ")
		if !there {
			continue
		}
		cmd := exec.Command("sh", "-c", "agentsite() { :; }\nagentsite "+suggested)
		cmd.Dir = dir
		cmd.Run()
		if _, err := os.Stat(filepath.Join(dir, "PWNED")); err == nil {
			t.Errorf("who pastes this runs what the site wants: %s", line)
			return
		}
	}
}
