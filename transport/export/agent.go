package export

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/device"
)

// KindName is the name of the kind of agent, and of its section.
const KindName = "export"

const (
	retry    = 5 * time.Second // the pause after a failed round, which doubles
	retryMax = 5 * time.Minute
	// mended is the shortest pause where an owner has to mend something, and laterMax the longest that a receiver
	// can ask for.
	mended   = time.Minute
	laterMax = time.Hour
)

// World holds the parts of the site that the agent uses. The zero World is for agents that are only checked.
type World struct {
	Site    string        // its name
	Version string        // of the program
	Raw     time.Duration // how long the history has each reading
	// Secret reads a file beside the configuration that nobody else can read, and File any file there.
	Secret func(name string) (string, error)
	File   func(name string) ([]byte, error)
	Now    func() (at time.Time, known bool)
	// Claimed reports whether the site has an owner. Before, nothing is sent.
	Claimed func() bool
	// Load reads what Store wrote, at most MaxFile bytes; nil where there is nothing. Store of nil removes it.
	Load  func() ([]byte, error)
	Store func([]byte) error

	through http.RoundTripper // instead of a network, for tests
}

// Kind returns the entry of the list of kinds.
func Kind(w World) agent.Kind {
	return agent.Kind{
		Name: KindName, Doc: "sends the history of the points that it may read to a store by Prometheus remote write",
		New: func() agent.Agent { return &Agent{RemoteWrite: RemoteWrite{Every: time.Minute}, world: w} },
	}
}

// Agent sends the history to one store.
type Agent struct {
	RemoteWrite RemoteWrite `json:"remote_write" jsonschema:"the store, which takes Prometheus remote write 1.0"`

	agent.Status

	world World

	mu   sync.Mutex
	told told
}

// RemoteWrite is the store that the history goes to, and how it is reached.
type RemoteWrite struct {
	URL          string            `json:"url" jsonschema:"where the store takes remote write: https://metrics.example.org/api/v1/write; of a private network an address, not a name"`
	Plain        bool              `json:"plain,omitempty" jsonschema:"whether http:// may go to another machine: whoever is on the way can read and change what is sent, the password or key too; off when not written"`
	User         string            `json:"user,omitempty" jsonschema:"the name to sign in with at the store, by HTTP basic authentication"`
	PasswordFile string            `json:"password_file,omitempty" jsonschema:"the name of a file beside the configuration with the user's password, which only its owner can read; never the password itself"`
	KeyFile      string            `json:"key_file,omitempty" jsonschema:"the name of a file beside the configuration with the bearer token, which only its owner can read; instead of user and password_file"`
	CAFile       string            `json:"ca_file,omitempty" jsonschema:"the name of a file beside the configuration with the certificate (PEM) of the authority that signed the store's; those of the system when not written"`
	Tenant       string            `json:"tenant,omitempty" jsonschema:"the tenant at a store that has several, such as Mimir: sent as X-Scope-OrgID"`
	Every        time.Duration     `json:"every,omitempty" jsonschema:"how often what is new is sent, 10s to 1h; 1m when not written"`
	Labels       map[string]string `json:"labels,omitempty" jsonschema:"further labels of each series, at most 8, such as { region: north }"`
}

// maxLabels and maxLabel bound the further labels, and so a request.
const maxLabels, maxLabel = 8, 64

// isPlain reports whether text has 1 to most characters of printable ASCII.
func isPlain(text string, most int) bool {
	return text != "" && len(text) <= most && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// Define implements agent.Defined.
func (a *Agent) Define() (agent.Definition, error) {
	w := &a.RemoteWrite
	wrong := func(key, format string, args ...any) (agent.Definition, error) {
		return agent.Definition{}, &agent.Mistake{Key: "remote_write." + key, Err: fmt.Errorf(format, args...)}
	}
	u, err := url.Parse(w.URL)
	switch {
	case err == nil && u.User != nil:
		return wrong("url", "a user has a key of its own, user:, and the password a file, "+
			"which password_file: names; leave them out of the URL")
	case err == nil && u.Hostname() == "localhost":
		return wrong("url", "localhost is a name, which can lead elsewhere; write 127.0.0.1 for this machine")
	case err != nil || u.Hostname() == "" || u.Fragment != "" || len(w.URL) > 512 ||
		u.Scheme != "https" && u.Scheme != "http":
		return wrong("url", "%.80q is no URL such as https://metrics.example.org/api/v1/write", w.URL)
	case u.Scheme == "http" && !w.Plain && !isLoopback(u.Hostname()):
		return wrong("url", "http:// to another machine can be read and changed by everybody on the way; "+
			"write https://, or plain: on beside it if that network is yours alone")
	case isLocalName(u.Hostname()):
		return wrong("url", "%.80q is a name of this network, whose answer anybody in it can change; "+
			"write the store's address, such as 192.168.1.20", u.Hostname())
	case w.Plain && u.Scheme == "https":
		return wrong("plain", "is for http:// only; remove it")
	case w.PasswordFile != "" && !agent.IsFile(w.PasswordFile):
		return wrong("password_file", "takes the name of a file beside the configuration, such as metrics.password, "+
			"and never the password itself")
	case w.KeyFile != "" && !agent.IsFile(w.KeyFile):
		return wrong("key_file", "takes the name of a file beside the configuration, such as metrics.token, "+
			"and never the token itself")
	case (w.User == "") != (w.PasswordFile == ""):
		return wrong("user", "user and password_file go together; write both")
	case w.User != "" && w.KeyFile != "":
		return wrong("key_file", "a store takes a password or a token; write user and password_file, or key_file")
	case w.User != "" && (!isPlain(w.User, 128) || strings.Contains(w.User, ":")):
		return wrong("user", "takes at most 128 characters of ASCII, and no colon")
	case w.CAFile != "" && (!agent.IsFile(w.CAFile) || u.Scheme == "http"):
		return wrong("ca_file", "takes the name of a file beside the configuration, such as metrics.pem, "+
			"for a store at https://")
	case w.Tenant != "" && !isPlain(w.Tenant, 128):
		return wrong("tenant", "takes at most 128 characters of ASCII")
	case w.Every < 10*time.Second || w.Every > time.Hour:
		return wrong("every", "takes 10s to 1h")
	case len(w.Labels) > maxLabels:
		return wrong("labels", "takes at most %d labels", maxLabels)
	}
	for name, value := range w.Labels {
		switch {
		case !isLabel(name):
			return wrong("labels", "%.40q cannot be a label: use letters, digits and _, not a digit first and not __", name)
		case name == labelSite || name == labelPoint || name == labelUnit || name == labelValue:
			return wrong("labels", "each series has the label %s already; use another name", name)
		case !isPlain(value, maxLabel):
			return wrong("labels", "%s takes a text of at most %d characters of ASCII", name, maxLabel)
		}
	}
	return agent.Definition{Powerless: "write what is sent, such as may: 'read *'", Secrets: []agent.Secret{
		{Key: "remote_write.password_file", File: w.PasswordFile}, {Key: "remote_write.key_file", File: w.KeyFile},
	}}, nil
}

// told counts what became of samples since the agent's start, for its owner.
type told struct {
	sent, refused int       // samples
	why           string    // of the last refusal
	until         time.Time // up to which everything was sent
	unread        string    // a point whose history cannot be read, and why
}

// Report implements agent.Reporting.
func (a *Agent) Report(ctx context.Context) agent.Report {
	r := a.Status.Report(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.told
	if r.Says == "" {
		r.Says = fmt.Sprintf("%d samples are sent", t.sent)
	}
	if !t.until.IsZero() {
		r.Says += "; up to " + t.until.UTC().Format(time.RFC3339)
	}
	if t.refused > 0 {
		r.Says += fmt.Sprintf("; the store has refused %d samples, which are left out (%s)", t.refused, t.why)
	}
	if t.unread != "" {
		r.Says += "; " + t.unread
	}
	return r
}

func (a *Agent) tell(change func(*told)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.told)
}

// Run sends what is new until ctx ends.
func (a *Agent) Run(ctx context.Context, self agents.Principal, site agents.Site) error {
	const unclaimed = "the site has no owner, and sends nothing before: agentsite claim"
	if a.AwaitOwner(ctx, a.world.Claimed, unclaimed) != nil {
		return nil
	}
	s, err := newSender(a, self, site)
	if err != nil {
		return err
	}
	defer func() { s.close(errors.Is(context.Cause(ctx), agent.ErrRemoved)) }()
	for pause, last := retry, ""; ; {
		err := s.round(ctx)
		s.client.CloseIdleConnections()
		if ctx.Err() != nil {
			return nil
		}
		wait, text := a.RemoteWrite.Every+rand.N(a.RemoteWrite.Every/10), "" // so that many sites do not send at once
		if err == nil {
			pause = retry
		} else {
			wait, text = max(pause/2+rand.N(pause/2), after(err)), err.Error()
			pause = min(2*pause, retryMax)
			a.Say(agent.Waiting, "it is tried again: %s", text)
		}
		if text != last && text != "" {
			slog.Warn("remote write: the store does not take the history, which is sent later", "err", err)
		}
		last = text
		if device.Sleep(ctx, wait) != nil {
			return nil
		}
	}
}

// after returns how long to wait at least after an error.
func after(err error) time.Duration {
	answer, ok := errors.AsType[*answerError](err)
	switch {
	case !ok:
		return 0
	case answer.Code < http.StatusInternalServerError && answer.Code != http.StatusTooManyRequests:
		return mended
	}
	return min(answer.after, laterMax)
}
