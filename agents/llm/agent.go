package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/llm/chat"
	"agentsite/agents/task"
	"agentsite/agents/tools"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// KindName is the name of the kind of agent, and so the beginning of a model's principal.
	KindName = "llm"
	// rank is below those of rules: a rule takes an output over from a model.
	rank = 1

	maxInstructions = 8 << 10
	maxTools        = 40
)

// The values of the key tainted.
const (
	taintedConfirm = "confirm"
	taintedRefuse  = "refuse"
)

// modePlan is a value of the key mode.
const modePlan = "plan"

// World is what models need of the site. The zero World is for agents that are only checked.
type World struct {
	Hosted tools.Hosted                 // the tools of other programs
	Now    func() (time.Time, bool)     // in the site's zone; false where it is a lower bound only
	Secret func(string) (string, error) // reads a file beside the configuration that nobody else can read
	Ledger *Ledger
	Queues *chat.Queues
	// Open opens a model that is not reached by its address; nil where it is.
	Open    func(Model) Completer
	StandIn bool // the stand-in answers for every model
	// Draft keeps the text of a rule as a draft, which an owner tries and accepts; nil for a site
	// that keeps none. Its errors are faults that the model reads.
	Draft func(ctx context.Context, self agents.Principal, asker, name, may, definition string) error
	// Decode decodes a model's arguments as strictly, and with the errors, as those of other callers;
	// nil for the decoder's own.
	Decode func(args jsontext.Value, into any) error
}

// Completer is a model. A *chat.Endpoint is one.
type Completer interface {
	Complete(ctx context.Context, r chat.Request, say func(sofar string)) (chat.Answer, error)
}

// Kind returns the entry of the list of kinds.
func Kind(w *World) agent.Kind {
	return agent.Kind{Name: KindName, Doc: "a language model of another machine, which answers in words and uses the site's tools", New: func() agent.Agent { return New(w) }}
}

// New returns an agent that is not configured yet.
func New(w *World) *Agent { return &Agent{world: w} }

// Agent is a language model as its owner configured it.
type Agent struct {
	Model        Model    `json:"model" jsonschema:"the server and the model"`
	Instructions string   `json:"instructions,omitempty" jsonschema:"what the model is told before each conversation"`
	Allowed      []string `json:"tools,omitempty" jsonschema:"the tools that it is offered, such as read_points; all that it may use when not written"`
	Mode         string   `json:"mode,omitempty" jsonschema:"plan fixes all calls before the model reads anything that others wrote"`
	Tainted      string   `json:"tainted,omitempty" jsonschema:"what becomes of moves after it has read what others wrote: confirm (an owner approves each) or refuse; confirm when not written"`
	Drafts       bool     `json:"drafts,omitempty" jsonschema:"whether it may write drafts of rules, which do nothing before you have accepted them"`
	Limits       Limits   `json:"limits,omitempty" jsonschema:"what it may use up"`

	world   *World
	name    string
	model   Completer
	held    agent.Held
	working atomic.Pointer[string] // the task that it works on; nil for none
	cut     atomic.Pointer[string] // what is noted of a server that cut the last request; nil for nothing
}

// Model is where a model is served.
type Model struct {
	URL     string `json:"url" jsonschema:"the address of the server's chat-completions API, such as http://laptop:11434/v1; stand-in for a script that needs none, to try the rest"`
	Name    string `json:"name" jsonschema:"the model's name there, such as qwen3:8b"`
	KeyFile string `json:"key_file,omitempty" jsonschema:"the name of a file beside the configuration with the server's API key, which only its owner can read; never the key itself"`
	Context int    `json:"context,omitempty" jsonschema:"how many tokens the server takes in one request; 8192 when not written"`
	Answer  int    `json:"answer,omitempty" jsonschema:"how many tokens of that one answer may have; 1024 when not written"`
	Images  bool   `json:"images,omitempty" jsonschema:"whether the model is shown the pictures of cameras"`
	// FirstToken and BetweenTokens bound the server's silence.
	FirstToken    time.Duration `json:"first_token,omitempty" jsonschema:"how long the server may take until its answer begins, 1s to 1h, with loading the model and reading the request; 5m when not written"`
	BetweenTokens time.Duration `json:"between_tokens,omitempty" jsonschema:"how long the server may be silent within an answer, 1s to 1h; 2m when not written"`
	Price         Price         `json:"price,omitempty" jsonschema:"what tokens cost, for limits.money_per_month"`
}

// Price is what a million tokens cost, in the currency of Limits.Money.
type Price struct {
	Prompt float64 `json:"prompt,omitempty" jsonschema:"a million tokens that are sent"`
	Answer float64 `json:"answer,omitempty" jsonschema:"a million tokens that are answered"`
}

// Limits bound what a model uses up. They are kept over restarts.
type Limits struct {
	Tokens int     `json:"tokens_per_day,omitempty" jsonschema:"200000 when not written"`
	Calls  int     `json:"calls_per_hour,omitempty" jsonschema:"how often the server is asked; 120 when not written"`
	Money  float64 `json:"money_per_month,omitempty" jsonschema:"by model.price; without limit when not written"`
	Moves  int     `json:"moves_per_task,omitempty" jsonschema:"1 to 16; 2 when not written"`
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// bounds are those of the whole numbers of a definition, and what they are when not written.
var bounds = [...]struct {
	key                    string
	otherwise, least, most int
}{
	{"model.context", 8192, 2048, 2_000_000}, {"model.answer", 1024, 64, 1_000_000}, {"limits.tokens_per_day", 200_000, 1, 1_000_000_000},
	{"limits.calls_per_hour", 120, 1, 3600}, {"limits.moves_per_task", 2, 1, 16},
}

// SetName implements agent.Named.
func (a *Agent) SetName(name string) { a.name = name }

// Define checks the keys, and fills in the defaults.
func (a *Agent) Define() (d agent.Definition, err error) {
	m, l := &a.Model, &a.Limits
	a.Tainted = cmp.Or(a.Tainted, taintedConfirm)
	key, says := "", ""
	for i, n := range [len(bounds)]*int{&m.Context, &m.Answer, &l.Tokens, &l.Calls, &l.Moves} {
		b := &bounds[i]
		if *n == 0 {
			*n = b.otherwise
		}
		if *n < b.least || *n > b.most {
			key, says = b.key, fmt.Sprintf("takes %d to %d", b.least, b.most)
		}
	}
	for _, name := range a.Allowed {
		if name == "" || !isWord(name, letters, 40) {
			key, says = "tools", fmt.Sprintf("%.60q is not the name of a tool", name)
		}
	}
	u, err := url.Parse(m.URL)
	switch {
	case m.URL != standInURL && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != ""):
		key, says = "model.url", "takes the address of a chat-completions API without a key in it, such as http://laptop:11434/v1"
	case m.Name == "" || len(m.Name) > 128:
		key, says = "model.name", "takes the model's name at the server, such as qwen3:8b"
	case m.KeyFile != "" && (strings.Contains("._-", m.KeyFile[:1]) || !isWord(m.KeyFile, letters+".-", 64)):
		key, says = "model.key_file", "takes the name of a file beside the configuration, such as model.key, and never the key itself"
	case m.KeyFile != "" && u.Scheme == "http" && !isLoopback(u.Hostname()):
		key, says = "model.url", "would send the key of model.key_file over plain HTTP, which anyone between can read; write its https URL, or leave out key_file"
	case !isSilence(m.FirstToken):
		key, says = "model.first_token", "takes a time from 1s to 1h"
	case !isSilence(m.BetweenTokens):
		key, says = "model.between_tokens", "takes a time from 1s to 1h"
	case m.Answer > m.Context/2:
		key, says = "model.answer", "takes at most half of model.context"
	case !isAmount(m.Price.Prompt) || !isAmount(m.Price.Answer):
		key, says = "model.price", "takes what a million tokens cost"
	case len(a.Instructions) > maxInstructions:
		key, says = "instructions", "has at most 8192 characters"
	case len(a.Allowed) > maxTools:
		key, says = "tools", "names at most 40 tools"
	case a.Mode != "" && a.Mode != modePlan:
		key, says = "mode", "takes plan, or is left out"
	case a.Tainted != taintedConfirm && a.Tainted != taintedRefuse:
		key, says = "tainted", "takes confirm or refuse"
	case !isAmount(l.Money):
		key, says = "limits.money_per_month", "takes an amount"
	case l.Money > 0 && m.Price.Prompt == 0 && m.Price.Answer == 0:
		key, says = "limits.money_per_month", "needs model.price: { prompt: …, answer: … }, what a million tokens cost"
	}
	if key != "" {
		return d, &agent.Mistake{Key: key, Err: errors.New(says)}
	}
	a.model = nil
	if m.URL == standInURL || a.world.StandIn {
		a.model = new(standIn)
	} else if a.world.Open != nil {
		a.model = a.world.Open(*m)
	}
	if a.model == nil {
		e := &chat.Endpoint{URL: strings.TrimSuffix(m.URL, "/"), Model: m.Name, First: m.FirstToken, Between: m.BetweenTokens}
		if m.KeyFile != "" {
			d.Secrets = []agent.Secret{{Key: "model.key_file", File: m.KeyFile}}
			e.Key = func() (string, error) { return a.world.Secret(m.KeyFile) }
		}
		a.model = e
	}
	d.Rank = rank
	return d, nil
}

// isSilence reports whether a time can bound a server's silence; 0 is that of the client.
func isSilence(d time.Duration) bool { return d == 0 || d >= time.Second && d <= time.Hour }

// isAmount reports whether a number is an amount of money.
func isAmount(n float64) bool { return n >= 0 && n <= 1e6 }

// Run implements agent.Agent. A model does nothing by itself. When it is paused or goes, what its
// tasks have left away from safe is released.
func (a *Agent) Run(ctx context.Context, self agents.Principal, site agents.Site) error {
	<-ctx.Done()
	a.held.Release(ctx, self, site)
	return nil
}

// Report implements agent.Reporting.
func (a *Agent) Report(context.Context) agent.Report {
	if id := a.working.Load(); id != nil {
		return agent.Report{State: agent.Running, Says: "works on task " + *id}
	}
	says := "waits to be asked"
	if a.world.Ledger != nil {
		used, err := a.world.Ledger.says(a)
		if err != nil {
			return agent.Report{State: agent.Waiting, Says: err.Error()}
		}
		says += "; " + used
	}
	if cut := a.cut.Load(); cut != nil {
		says += "; " + *cut
	}
	return agent.Report{State: agent.Idle, Says: says}
}

// Skills implements agent.Worker.
func (a *Agent) Skills() []task.Skill {
	return []task.Skill{{ID: task.TalkSkill, Description: "answers what is said to it in words, and uses the site's tools for it"}}
}
