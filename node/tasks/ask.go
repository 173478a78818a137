package tasks

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/node/hosted"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Agents implements task.Host.
func (m *Manager) Agents(_ context.Context, p agents.Principal) ([]task.Agent, error) {
	if _, err := m.Node.Account(p); err != nil {
		return nil, err
	}
	all := []task.Agent{}
	for _, w := range m.Workers() {
		if m.Node.MayAsk(p, w.Name) == nil {
			all = append(all, task.Agent{Name: w.Name, Description: w.Description, Skills: w.Tagged()})
		}
	}
	return all, nil
}

// Ask implements task.Host.
func (m *Manager) Ask(ctx context.Context, p agents.Principal, r task.Request) (task.Task, error) {
	account, err := m.Node.Account(p)
	if err != nil {
		return task.Task{}, err
	}
	if err := m.load(); err != nil {
		return task.Task{}, err
	}
	if err := m.asking.LockContext(ctx); err != nil {
		return task.Task{}, device.Faultf(device.Busy, "the site's disk is slow; ask again")
	}
	defer m.asking.Unlock()
	m.repair()
	m.prune()
	e := entry{
		Kind: kindAsked, Agent: r.Agent, Text: r.Text, Arguments: slices.Clone(r.Arguments), Asker: p.ID,
		Owner: m.Node.Owner(p) == nil, Account: account, Via: r.Via, Context: r.Context,
	}
	if e.ID, err = newID(p, r.Terms); err != nil {
		return task.Task{}, err
	}
	if r.Key != nil {
		e.Key = *r.Key
	}
	made := func() (task.Task, bool, error) { return m.replay(p, r, e.ID) }
	if t, ok, err := made(); ok || err != nil {
		return t, err
	}
	end, err := m.Node.Ask(p, r.Agent, argsOf(r), r.Terms, m.check(p, r, &e))
	if err != nil {
		return task.Task{}, err
	}
	if err := m.begin(&e, end); err != nil {
		return task.Task{}, err
	}
	m.serve(e.Agent)
	return m.Task(ctx, p, e.ID)
}

// begin stores a task that may be asked for.
func (m *Manager) begin(e *entry, end func(result any, err error)) (err error) {
	err = errDefect
	defer func() {
		end(struct {
			Task string `json:"task"`
		}{e.ID}, err)
	}()
	err = m.create(e)
	return err
}

// newID returns the ID of a new task. The ID of a task with a key is always the same, so that its
// file is found after a restart without reading any other.
func newID(p agents.Principal, t agents.Terms) (string, error) {
	if t.Key == nil {
		return rand.Text(), nil
	}
	if err := t.CheckKey(); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte("agentsite task\x00" + p.ID + "\x00" + *t.Key))
	return base32.StdEncoding.EncodeToString(sum[:])[:26], nil
}

// asked is the request, as the journal, an approval and an idempotency key have it: all that the agent
// is told.
type asked struct {
	Agent     string         `json:"agent"`
	Skill     string         `json:"skill,omitzero"`
	Text      string         `json:"text,omitzero"`
	Arguments jsontext.Value `json:"arguments,omitzero"`
	Context   string         `json:"context,omitzero"`
	Seconds   *float64       `json:"seconds,omitzero"`
}

func argsOf(r task.Request) asked {
	a := asked{r.Agent, r.Skill, r.Text, slices.Clone(r.Arguments), r.Context, r.Seconds}
	if !utf8.ValidString(a.Text) { // check refuses it, and refusals are stored
		a.Text = ""
	}
	if !utf8.ValidString(a.Context) {
		a.Context = ""
	}
	if a.Arguments != nil && a.Arguments.Canonicalize() != nil {
		a.Arguments = nil
	}
	return a
}

// digestOf is the same for equal requests.
func digestOf(r task.Request) []byte {
	text, err := json.Marshal(argsOf(r), json.Deterministic(true))
	if err != nil {
		text = nil
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// replay returns the task that was asked for with the same key, if there is one.
func (m *Manager) replay(p agents.Principal, r task.Request, id string) (t task.Task, ok bool, err error) {
	if r.Key == nil {
		return t, false, nil
	}
	before, err := m.find(p, id)
	if before == nil || err != nil {
		return t, before != nil, err
	}
	if string(before.asked.Request) != string(digestOf(r)) {
		return t, false, device.Faultf(device.Invalid,
			"this key was used to ask for something else; use another one for each request")
	}
	t, err = m.view(before, id)
	return t, true, err
}

// check refuses a request that makes no sense, and fills in the rest of its entry. Only a caller that may
// ask the agent is told.
func (m *Manager) check(p agents.Principal, r task.Request, e *entry) error {
	workers := m.Workers()
	i := slices.IndexFunc(workers, func(w hosted.Worker) bool { return w.Name == r.Agent })
	if i < 0 {
		var names []string
		for _, w := range workers {
			if m.Node.MayAsk(p, w.Name) == nil {
				names = append(names, w.Name)
			}
		}
		return agents.CheckName("agent", r.Agent, names)
	}
	w := workers[i]
	skills := w.Skills()
	names := make([]string, len(skills))
	for i, s := range skills {
		names[i] = s.ID
	}
	e.Skill = r.Skill
	if e.Skill == "" && len(names) == 1 {
		e.Skill = names[0]
	}
	if err := agents.CheckName("skill", e.Skill, names); err != nil {
		return err
	}
	skill := skills[slices.Index(names, e.Skill)]
	if err := checkText("text", r.Text); err != nil && r.Text != "" {
		return err
	}
	switch {
	case len(r.Context) > maxContext || strings.ContainsFunc(r.Context, func(r rune) bool { return r < ' ' || r > '~' }):
		return device.Faultf(device.Invalid, "context has at most %d printable characters of ASCII", maxContext)
	case len(r.Arguments) > maxArgs:
		return device.Faultf(device.Invalid, "arguments are %d bytes; at most %d are taken", len(r.Arguments), maxArgs)
	case r.Arguments != nil && (e.Arguments == nil || jsontext.Value(e.Arguments).Kind() != '{' ||
		(*jsontext.Value)(&e.Arguments).Canonicalize() != nil):
		return device.Faultf(device.Invalid, "arguments have to be a JSON object")
	case skill.Input == nil && e.Arguments != nil && string(e.Arguments) != "{}":
		return device.Faultf(device.Invalid, "%s takes no arguments; leave them out", e.Skill)
	case len(r.Via) > agents.MaxVia:
		return device.Faultf(device.Denied,
			"this was asked through %d sites and agents; a task may come through %d", len(r.Via), agents.MaxVia)
	case slices.ContainsFunc(r.Via, func(name string) bool { return len(name) > maxName }):
		return device.Faultf(device.Invalid, "agentsite/via: a name of a site or an agent has at most %d bytes", maxName)
	}
	length := max(defaultTime, m.ApprovalWait) + time.Duration(skill.Seconds*float64(time.Second))
	if s := r.Seconds; s != nil {
		if !(*s >= 1 && *s <= maxTime.Seconds()) {
			return device.Faultf(device.Invalid, "seconds is %v; it has to be from 1 to %v", *s, maxTime.Seconds())
		}
		length = time.Duration(*s * float64(time.Second))
	}
	e.Left = min(length, maxTime).Milliseconds()
	e.Request, e.Definition = digestOf(r), w.Digest[:]
	return m.room(p, e.Account)
}

// checkText bounds a text of an asker.
func checkText(field, text string) error {
	switch {
	case text == "":
		return device.Faultf(device.Invalid, "%s is missing", field)
	case len(text) > maxText:
		return device.Faultf(device.Invalid, "%s is %d bytes; at most %d are taken", field, len(text), maxText)
	case !utf8.ValidString(text):
		return device.Faultf(device.Invalid, "%s is not UTF-8", field)
	}
	return nil
}

// room refuses a task where too many are live. Tasks are made one at a time.
func (m *Manager) room(p agents.Principal, account string) error {
	most := maxLive
	if m.Node.Owner(p) != nil {
		most -= reserved
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	others, own := 0, 0
	for _, j := range m.live {
		if j.asked.Account == account {
			own++
		}
		if !j.asked.Owner {
			others++
		}
	}
	switch {
	case m.closed:
		return device.Faultf(device.Unavailable, "%w", errEnding)
	case own >= maxAccount:
		return device.Faultf(device.Busy,
			"%d tasks of yours, or of those who share your permission, have not ended: wait for one, or cancel it", own)
	case len(m.live) >= maxLive || most < maxLive && others >= most:
		return device.Faultf(device.Busy, "too many tasks have not ended here: wait for one to end")
	}
	return nil
}

// create makes a task durable and live.
func (m *Manager) create(e *entry) error {
	now, sure := m.Now()
	m.mu.Lock()
	e.At, e.Sure, e.Order = now.UnixMilli(), sure, m.order+1
	m.mu.Unlock()
	var r record
	if err := r.apply(e); err != nil {
		return device.Faultf(device.Internal, "the task cannot be made: %w", err)
	}
	b, err := appendFrame([]byte(magic), e)
	if err != nil {
		return device.Faultf(device.Internal, "the task cannot be written: %w", err)
	}
	j := newJob(r, int64(len(b)))
	f, err := m.disk.Create(j.name())
	if err != nil {
		return diskFault(err)
	}
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = m.disk.Sync()
	}
	if err != nil { // it is not promised to anybody, and empty it is not done, should its name stay
		f.Truncate(0)
		f.Close()
		m.disk.Remove(j.name())
		return diskFault(err)
	}
	j.file = f
	j.seen.Store(true)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(j, time.Duration(e.Left)*time.Millisecond)
	return nil
}
