package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/tools"
	"agentsite/device"
)

// KindName is the name of the kind of agent, and so the beginning of its principal.
const KindName = "mcp"

const (
	maxTools   = 16 // of one child
	maxCommand = 32 // words
	maxWord    = 1 << 10
	maxSecrets = 8
	maxName    = 40 // of an offered tool

	startTime = time.Minute // for a child to start and to list its tools, on a slow board
	callTime  = time.Minute
	idleTime  = 5 * time.Minute

	// The back-off before a crashed child is restarted begins at backoffMin and doubles up to
	// backoffMax. After maxCrashes crashes without an answer between them, the child is not
	// restarted. Crashes during calls count for the accounts of these alone.
	backoffMin = time.Second
	backoffMax = 5 * time.Minute
	maxCrashes = 5
)

// isolationNone is the value of the key isolation: without a unit of the service manager.
const isolationNone = "none"

// World holds the parts of the site that children use. The zero World is for agents that are only
// checked.
type World struct {
	Book    *Book
	Secrets string // the folder of the files that secrets names
	Version string // of the program
	Changed func() // is called when the offered tools have changed; never blocks for long
	// Dial starts a child and connects to it; nil for Agent's own ways.
	Dial func(ctx context.Context, a *Agent) (io.ReadWriteCloser, error)
}

// Kind returns the entry of the list of kinds.
func Kind(w World) agent.Kind {
	return agent.Kind{Name: KindName, Doc: "another program's tools, by the Model Context Protocol, which an owner accepts one by one", New: func() agent.Agent { return New(w) }}
}

// New returns an agent that is not configured yet.
func New(w World) *Agent {
	if w.Changed == nil {
		w.Changed = func() {}
	}
	return &Agent{world: w, starting: device.NewMutex(), withdrawn: make(map[string]bool), blamed: make(map[string]failures)}
}

// Agent offers the tools of a child.
type Agent struct {
	Command   []string          `json:"command" jsonschema:"the program and its arguments, as a list"`
	Allowed   []string          `json:"tools" jsonschema:"the child's tools that may be offered, at most 16"`
	Rename    map[string]string `json:"rename,omitempty" jsonschema:"other names for tools: those that the child has, and ours"`
	Net       bool              `json:"net,omitempty" jsonschema:"whether the child may use the network"`
	Secrets   map[string]string `json:"secrets,omitempty" jsonschema:"environment variables of the child, and the files with their values beside the configuration"`
	Isolation string            `json:"isolation,omitempty" jsonschema:"none runs the child as a plain process of the site, which protects nothing"`

	world World
	name  string

	starting device.Mutex // held while a child starts or lists
	older    bool         // the last child was greeted in olderRevision; starting guards it

	mu        sync.Mutex
	life      context.Context     // of Run; nil while it does not run
	child     *child              // nil for none
	crashes   int                 // in a row, without a call
	until     time.Time           // no start before
	blamed    map[string]failures // by the account whose calls the child crashed in
	skips     string              // what the last child wrote beside messages
	last      string              // why the last child ended; "" for well
	withdrawn map[string]bool     // by the child's names: what it last offered in other words, or not at all
}

var (
	toolName   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./-]{0,63}$`) })
	ownName    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9_]{1,40}$`) })
	envName    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`) })
	secretName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`) })
	// takenNames are variables of which the loader, the shell or the runtimes of usual children
	// make programs.
	takenNames = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(LD_.*|PATH|HOME|IFS|ENV|BASH_ENV|NODE_OPTIONS|PYTHON.*|CREDENTIALS_DIRECTORY)$`)
	})
)

// SetName implements agent.Named.
func (a *Agent) SetName(name string) { a.name = name }

// offeredAs returns the name by which a tool of the child is offered.
func (a *Agent) offeredAs(tool string) string {
	own := tool
	if other, ok := a.Rename[tool]; ok {
		own = other
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("./-", r) {
			return '_'
		}
		return r
	}, strings.ToLower(a.name+"_"+own))
}

// Define checks the keys, and names the tools that the agent may come to offer.
func (a *Agent) Define() (agent.Definition, error) {
	wrong := func(key, format string, args ...any) (agent.Definition, error) {
		return agent.Definition{}, &agent.Mistake{Key: key, Err: fmt.Errorf(format, args...)}
	}
	if err := checkCommand(a.Command); err != nil {
		return wrong("command", "%w", err)
	}
	if len(a.Allowed) == 0 || len(a.Allowed) > maxTools {
		return wrong("tools", "name 1 to %d tools of the child: only these are offered, once you have accepted them", maxTools)
	}
	var d agent.Definition
	for i, tool := range a.Allowed {
		if !toolName().MatchString(tool) || slices.Contains(a.Allowed[:i], tool) {
			return wrong("tools", "%.70q is not the name of a tool, or is there twice", tool)
		}
		name := a.offeredAs(tool)
		switch {
		case !ownName().MatchString(name):
			return wrong("tools", "%q would be offered as %q, which has more than %d characters or others than a-z, 0-9 and _; write a shorter name under \"rename:\"", tool, name, maxName)
		case tools.IsOperation(name):
			return wrong("tools", "%q would be offered as %q, which is a tool of the site; write another name under \"rename:\"", tool, name)
		case slices.Contains(d.Tools, name):
			return wrong("tools", "two tools would be offered as %q; write another name for one under \"rename:\"", name)
		}
		d.Tools = append(d.Tools, name)
	}
	for tool := range a.Rename {
		if !slices.Contains(a.Allowed, tool) {
			return wrong("rename", "%.70q is not among \"tools:\"%s", tool, device.Suggest(tool, a.Allowed, "tool"))
		}
	}
	if len(a.Secrets) > maxSecrets {
		return wrong("secrets", "at most %d", maxSecrets)
	}
	for variable, file := range a.Secrets {
		if !envName().MatchString(variable) || takenNames().MatchString(variable) {
			return wrong("secrets", "%.70q is not an environment variable for a secret; write it like { API_KEY: weather.key }", variable)
		}
		if !secretName().MatchString(file) {
			return wrong("secrets", "%s takes the name of a file beside the configuration, such as weather.key, and never the secret itself", variable)
		}
	}
	if a.Isolation != "" && a.Isolation != isolationNone {
		return wrong("isolation", "it takes none, or is left out")
	}
	return d, nil
}

// checkCommand refuses words that could not be written into a unit.
func checkCommand(command []string) error {
	if len(command) == 0 || len(command) > maxCommand {
		return fmt.Errorf("write the program and its arguments as a list of 1 to %d words, such as [node, /opt/weather/server.js]", maxCommand)
	}
	for _, word := range command {
		if len(word) > maxWord || strings.ContainsFunc(word, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }) {
			return fmt.Errorf("%.40q has control characters, or more than %d bytes", word, maxWord)
		}
	}
	if p := command[0]; !filepath.IsAbs(p) && !toolName().MatchString(p) || strings.Contains(strings.TrimPrefix(p, "/"), "/") && !filepath.IsAbs(p) {
		return errors.New("the program is an absolute path, or a name that is found in PATH")
	}
	return nil
}

// Run lets the child be started by calls until ctx ends, and ends it then.
func (a *Agent) Run(ctx context.Context, _ agents.Principal, _ agents.Site) error {
	a.mu.Lock()
	a.life = ctx
	a.mu.Unlock()
	<-ctx.Done()
	a.mu.Lock()
	a.life = nil
	c := a.child
	a.mu.Unlock()
	if c != nil {
		c.stop()
		<-c.ended
	}
	a.starting.Lock() // a start that was under way has ended its child
	defer a.starting.Unlock()
	return nil
}

// Resume implements agent.Resumer: a child that is off may be started again.
func (a *Agent) Resume() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.crashes, a.until, a.last = 0, time.Time{}, ""
	clear(a.blamed)
}

// failures are crashes in a row, and when another start is tried.
type failures struct {
	n     int
	until time.Time
}

// backOff returns when a start is tried again after a crash, behind n others in a row.
func backOff(n int) time.Time { return time.Now().Add(min(backoffMin<<min(n, 16), backoffMax)) }

// Report says whether the child runs, and why it does not.
func (a *Agent) Report(context.Context) agent.Report {
	r := a.report()
	a.mu.Lock()
	defer a.mu.Unlock()
	skips := a.skips
	if a.child != nil {
		skips = a.child.skips()
	}
	if skips != "" && r.Says != "" && !strings.HasSuffix(r.Says, skips) {
		r.Says += "; " + skips
	}
	return r
}

func (a *Agent) report() agent.Report {
	offered := len(a.Tools())
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.life == nil:
		return agent.Report{}
	case a.child != nil && a.child.over.Load():
		return agent.Report{State: agent.Waiting, Says: "the child ends"}
	case a.crashes >= maxCrashes:
		return agent.Report{State: agent.Failed, Says: "off after " + fmt.Sprint(maxCrashes) + " crashes until it is resumed; the last: " + a.last}
	case a.last != "":
		return agent.Report{State: agent.Failed, Says: a.last}
	case offered < len(a.Allowed):
		return agent.Report{State: agent.Waiting, Says: fmt.Sprintf("%d of %d tools are not accepted: run agentsite agents tools %s", len(a.Allowed)-offered, len(a.Allowed), a.name)}
	case a.child != nil:
		return agent.Report{State: agent.Running, Says: "the child runs"}
	}
	return agent.Report{State: agent.Idle, Says: "a call starts the child"}
}
