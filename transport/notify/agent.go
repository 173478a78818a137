// Package notify tells people and programs outside of the site what has happened at it, and what its agents ask
// to be told: by ntfy, a webhook, Home Assistant, Telegram or e-mail, and by the push service of a phone's browser. It
// is a kind of hosted agent, which others of the site ask. A message
// carries no power: its link leads to the page, where an owner's key is needed as always.
package notify

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/node/occurrence"
	"agentsite/node/outbox"
	"agentsite/node/push"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// KindName is the name of the kind of agent, and of its section.
const KindName = "notify"

// sendSkill is the one skill, so that nobody has to name it.
const sendSkill = "send"

// message is the kind of items that agents ask for, beside the kinds of occurrences.
const message = "message"

const (
	maxReceivers = 8
	maxText      = 500 // characters of a message of an asker
	maxBecause   = 160 // of a reason that the guard or a driver gives
	sendTimeout  = 10 * time.Second
)

// World holds the parts of the site that the agent uses. The zero World is for agents that are only checked.
type World struct {
	Site   string // its name
	Source *occurrence.Source
	Outbox *outbox.Outbox
	Phones *push.Store
	Secret func(name string) (string, error) // reads a file beside the configuration that nobody else can read
	Name   func(principal string) string     // what an owner calls a principal; "" for no name
	Owner  func(principal string) bool       // whether it is an owner
	Now    func() (time.Time, bool)

	telegram string         // another API's URL, for tests
	roots    *x509.CertPool // of mail servers, for tests; the system's where it is nil
}

// Kind returns the entry of the list of kinds.
func Kind(w World) agent.Kind {
	return agent.Kind{Name: KindName, Doc: "tells people and programs elsewhere what has happened, and what agents ask it to tell", New: func() agent.Agent { return &Agent{world: w} }}
}

// Agent tells receivers.
type Agent struct {
	To   map[string]Receiver `json:"to,omitempty" jsonschema:"who is told, at most 8: a name of each receiver, with how it is reached"`
	Page string              `json:"page,omitempty" jsonschema:"the URL of the web page, as the receiver's phone opens it, such as https://greenhouse.local:8474, to which messages have a link, and by which phones are told that an owner allowed; none when not written"`
	Push string              `json:"push,omitempty" jsonschema:"a push service at a private address, such as https://192.168.1.20:8443, at which the browsers of your phones may take messages; those of the Internet need no entry"`

	world World
}

// Define implements agent.Defined.
func (a *Agent) Define() (agent.Definition, error) {
	bad := func(key, format string, args ...any) (agent.Definition, error) {
		return agent.Definition{}, &agent.Mistake{Key: key, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case len(a.To) == 0 && a.Page == "":
		return bad("to", "names nobody; write to: { phone: { ntfy: https://ntfy.sh/TOPIC } }, or page: with the URL of the page for the phones that it tells")
	case len(a.To) > maxReceivers:
		return bad("to", "%d receivers are enough", maxReceivers)
	case a.Page != "" && !isPage(a.Page):
		return bad("page", "takes the https URL of the page, such as https://greenhouse.local:8474, without user, query and fragment, not %.80q", a.Page)
	case a.Push != "" && (a.Page == "" || !isPage(a.Push) || strings.Count(strings.TrimSuffix(a.Push, "/"), "/") != 2):
		return bad("push", "takes the https URL of a push service without a path, such as https://192.168.1.20:8443, beside page, not %.80q", a.Push)
	}
	d := agent.Definition{Fixed: true}
	for _, name := range slices.Sorted(maps.Keys(a.To)) {
		if err := device.CheckName(name); err != nil {
			return bad("to."+name, "%w", err)
		}
		if key, err := a.To[name].check(); err != nil {
			return bad(strings.TrimSuffix("to."+name+"."+key, "."), "%w", err)
		}
		if file := a.To[name].KeyFile; file != "" {
			d.Secrets = append(d.Secrets, agent.Secret{Key: "to." + name + ".key_file", File: file})
		}
	}
	return d, nil
}

// Run tells the receivers until ctx ends.
func (a *Agent) Run(ctx context.Context, _ agents.Principal, _ agents.Site) error {
	a.world.Outbox.SetReceivers(a.receivers()) // before the first occurrence, which would find none
	leave := a.world.Source.Join(func(o occurrence.Occurrence) { a.world.Outbox.Add(a.item(o)) })
	defer leave()
	var changed <-chan struct{}
	if a.Page != "" && a.world.Phones != nil {
		defer a.world.Phones.Begin()()
		changed = a.world.Phones.Changed()
	}
	a.world.Outbox.RunChanging(ctx, a.receivers, changed)
	return nil
}

// receivers returns those of the configuration, and the phones that are told now.
func (a *Agent) receivers() (all []outbox.Receiver) {
	for _, name := range slices.Sorted(maps.Keys(a.To)) {
		r := a.To[name]
		all = append(all, outbox.Receiver{Name: name, Sender: a.sender(r), About: r.About})
	}
	return append(all, a.pushers()...)
}

// called returns the name of a receiver for people.
func (a *Agent) called(receiver string) string {
	if key, ok := strings.CutPrefix(receiver, phoneName); ok {
		return a.name(key)
	}
	return receiver
}

// Report implements agent.Reporting.
func (a *Agent) Report(context.Context) agent.Report {
	n := len(a.To) + len(a.pushers())
	r := agent.Report{State: agent.Idle, Says: fmt.Sprintf("it tells %d receivers", n)}
	switch n {
	case 0:
		r.Says = "it tells nobody until an owner allows a phone"
	case 1:
		r.Says = "it tells one receiver"
	}
	for _, w := range a.world.Outbox.Waiting() {
		switch {
		case w.Refused > 0:
			r.State = agent.Waiting
			r.Says += fmt.Sprintf("; %s does not take what it is sent (%d are left out): %s", a.called(w.Receiver), w.Refused,
				w.Fault)
		case w.Fault != "":
			r.State = agent.Waiting
			since := max(time.Since(w.Since).Round(time.Second), time.Second)
			r.Says += fmt.Sprintf("; %s has failed for %s (%d wait): %s",
				a.called(w.Receiver), device.FormatDuration(since), w.Items, w.Fault)
		}
	}
	return r
}

// Skills implements agent.Worker.
func (a *Agent) Skills() []task.Skill {
	return []task.Skill{{
		ID: sendSkill, Description: "tells the owner's receivers a text, which may wait for others and be sent with them",
		Input: jsontext.Value(`{"type":"object","properties":{"test":{"type":"boolean","description":"for owners: send each receiver a test message at once, and say whether it arrived"}},"additionalProperties":false}`),
	}}
}

// Work implements agent.Worker. A text is stored before the task is completed.
func (a *Agent) Work(ctx context.Context, _ agents.Principal, _ agents.Site, w task.Work) (jsontext.Value, error) {
	t := w.Task()
	var of struct {
		Test bool `json:"test"`
	}
	if t.Arguments != nil {
		if err := json.Unmarshal(t.Arguments, &of, json.RejectUnknownMembers(true)); err != nil {
			return nil, device.Faultf(device.Invalid, "arguments: takes text, and test")
		}
	}
	if of.Test {
		if !a.world.Owner(t.Asker) {
			return nil, device.Faultf(device.Denied, "only an owner sends a test, which goes past what waits")
		}
		all, err := a.test(ctx, t.ID)
		if err != nil {
			return nil, err
		}
		return json.Marshal(all)
	}
	text := plain(t.Text, maxText)
	if text == "" {
		return nil, device.Faultf(device.Invalid, "text is missing: say what is to be told")
	}
	at, sure := a.world.Now()
	item := outbox.Item{
		ID: t.ID, Key: "task " + t.ID, Kind: message, From: cmp.Or(t.Asker, "?"), At: at.Round(0), Sure: sure,
		Title: fmt.Sprintf("%s: a message of %s", a.world.Site, a.name(t.Asker)), Text: "“" + text + "”",
		Link: a.link("tasks", ""),
	}
	if err := a.world.Outbox.Ask(item); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]bool{"taken": true})
}

// Tried is the result of a test message.
type Tried struct {
	Receiver string `json:"receiver"`
	Fault    string `json:"fault,omitzero"` // "" where it has arrived
}

// test sends each receiver one message, all at once.
func (a *Agent) test(ctx context.Context, id string) ([]Tried, error) {
	to := a.receivers()
	all, done := make([]Tried, len(to)), make(chan struct{})
	at, sure := a.world.Now()
	m := outbox.Message{ID: id, Items: []outbox.Item{{
		ID: id, Key: "test", Kind: "test", Title: a.world.Site + ": a test", Text: "Messages of this site arrive here.",
		At: at.Round(0), Sure: sure, Count: 1, Link: a.link("", ""),
	}}}
	for i, r := range to {
		go func() {
			all[i].Receiver = a.called(r.Name)
			if err := r.Send(ctx, m); err != nil {
				all[i].Fault = err.Error()
			}
			done <- struct{}{}
		}()
	}
	for range to {
		<-done
	}
	return all, ctx.Err()
}

// link returns the URL of a view of the page; "" without a page.
func (a *Agent) link(view, query string) string {
	switch base := strings.TrimSuffix(a.Page, "/"); {
	case base == "":
		return ""
	case view == "":
		return base + "/"
	default:
		return base + "/#" + view + "?s=" + a.world.Site + query
	}
}

// name returns the name of a principal for a message: that which an owner gave it, or its ID.
func (a *Agent) name(id string) string {
	if a.world.Name != nil {
		if name := a.world.Name(id); name != "" {
			return plain(name, 60)
		}
	}
	return plain(id, 80)
}

// plain returns a text of somebody else on one line, of printable characters, and cut.
func plain(text string, most int) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return !printable(r) }), " ")
	text = strings.NewReplacer("“", `"`, "”", `"`, "•", "-").Replace(text) // which mark a text of others, and an item
	return cutRunes(text, most)
}
