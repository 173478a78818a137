// Package rollback tries a configuration for a time, and puts the one before back unless an owner
// confirms the new one while the site is well.
//
// A record on the disk says which text is on trial and keeps the text before. It is written before the
// configuration is, so that a crash, a kill or a loss of power at any moment ends in one of both. A start of
// the site during a trial rolls back: only a change that needs a restart is tried by a start, and by one only.
// Time is that of the process, so that a stepped clock neither ends nor prolongs a trial.
package rollback

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/node/state"

	"github.com/go-json-experiment/json"
)

// The lengths of a trial.
const (
	MinLength = 10 * time.Second
	MaxLength = time.Hour
)

const (
	lookInterval  = time.Second
	lookTimeout   = 5 * time.Second
	retryInterval = 10 * time.Second // between attempts to put the text before back
	maxSettle     = 10 * time.Second
	// MaxRecord bounds the record, which has the text before, in bytes.
	MaxRecord = 8 << 20
)

// State is the state of a trial.
type State string

const (
	Running    State = "running"
	Kept       State = "kept"        // an owner confirmed it
	RolledBack State = "rolled_back" // the text before is in the file again
	Replaced   State = "replaced"    // somebody else changed the file meanwhile, which stays as that
)

// Trial is the record of a trial: the last one, or the one that runs.
type Trial struct {
	File    string   `json:"file"`
	Digest  string   `json:"digest"`          // of the text on trial
	Before  string   `json:"before,omitzero"` // the text before, while the trial runs
	Who     string   `json:"who"`             // the owner who began it
	Seconds float64  `json:"seconds"`
	Restart bool     `json:"restart,omitzero"` // it is tried by a start of the site
	Started bool     `json:"started,omitzero"` // that start has begun
	Known   []string `json:"known,omitzero"`   // problems that the site had before
	State   State    `json:"state"`
	Because string   `json:"because,omitzero"` // why it was rolled back
}

// Options hold the parts of the site that a Manager uses.
type Options struct {
	Read  func() ([]byte, error) // the record; nil for none
	Write func([]byte) error     // replaces it, durably
	// Rewrite replaces the text of a file as state.Rewrite does, and Restore as state.Restore does.
	Rewrite, Restore func(file string, from, to []byte) error
	// Restart ends the site, whose service manager starts it again; nil where nobody does.
	Restart func()
}

// Site is the running site.
type Site struct {
	Reload func(context.Context) error // as devices.Manager.Reload
	// Problems returns what is wrong, by the name of the thing.
	Problems func(context.Context) map[string]string
	NotKept  func(says string) // is called when a trial has ended otherwise than by its confirmation
	Turn     sync.Locker       // of changes of the configuration
}

// Manager runs trials, one at a time. Its methods may be called concurrently.
type Manager struct {
	Options

	mu        sync.Mutex
	trial     Trial // the last one; without a State there is none
	began     time.Time
	wellSince time.Time // zero while a problem lasts, or before the text is in use
	badSince  time.Time // zero for no problem
	problem   string
	tried     bool // by this start of the site
	confirmed bool
	undone    string // why an owner took it back
	unkept    error  // why a confirmation could not be stored
	ended     chan struct{}
	wake      chan struct{}
}

// Open reads the record and settles a trial that the last run of the site did not end. It is called before the
// configuration is read, by the process that has the data folder. says is for the journal; "" for nothing.
func Open(o Options) (m *Manager, says string) {
	m = &Manager{Options: o, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	text, err := o.Read()
	if err == nil && text != nil {
		err = json.Unmarshal(text, &m.trial)
	}
	if err != nil { // the text before is still beside the file
		slog.Error("the record of the last trial of a configuration cannot be read", "err", err)
		m.trial = Trial{}
	}
	if m.trial.State != Running {
		close(m.ended)
		return m, ""
	}
	m.begin()
	if m.trial.Restart && !m.trial.Started && m.inUse() {
		m.trial.Started = true
		if err = m.store(m.trial); err == nil {
			m.tried = true
			return m, fmt.Sprintf("the configuration of %s is on trial for %s", m.trial.Who, device.FormatDuration(m.length()))
		} // without a record of this start, the next one would be a second
	}
	because := "the site was restarted during the trial"
	if m.trial.Started {
		because = "the site did not run to the end of the trial"
	}
	err = m.putBack()
	if errors.Is(err, state.ErrChanged) {
		return m, m.end(Replaced, changed)
	}
	if err != nil { // Run tries again
		slog.Error("the configuration before cannot be put back", "file", m.trial.File, "err", err)
		m.undone = because
		return m, ""
	}
	return m, m.end(RolledBack, because)
}

// begin starts the clock of the trial. The lock is held, or nobody else has m yet.
func (m *Manager) begin() {
	m.began, m.badSince, m.wellSince = time.Now(), time.Time{}, time.Time{}
	m.confirmed, m.undone, m.problem, m.unkept, m.ended = false, "", "", nil, make(chan struct{})
}

const changed = "somebody wrote the file, which stays as that"

func (m *Manager) length() time.Duration {
	return time.Duration(m.trial.Seconds * float64(time.Second))
}

// left returns the rest of the trial.
func (m *Manager) left() time.Duration { return max(0, m.length()-time.Since(m.began)) }

// settle returns the time for which the site has to be well before a trial succeeds, or not well before it fails
// early.
func (m *Manager) settle() time.Duration { return min(maxSettle, m.length()/3) }

// Digest returns the digest of a configuration's text, which names it in requests.
func Digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func (m *Manager) inUse() bool {
	text, err := os.ReadFile(m.trial.File)
	return err == nil && Digest(text) == m.trial.Digest
}

func (m *Manager) store(t Trial) error {
	text, err := json.Marshal(t)
	if err == nil {
		err = m.Write(text)
	}
	return err
}

// Running reports whether a trial runs.
func (m *Manager) Running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trial.State == Running
}

// Begin records that a text is tried from now on. Its caller has the turn, and then writes the text and calls InUse,
// Abandon, or Restart.
func (m *Manager) Begin(t Trial, known map[string]string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch length := time.Duration(t.Seconds * float64(time.Second)); {
	case m.trial.State == Running:
		return ErrRuns
	case length < MinLength || length > MaxLength:
		return device.Faultf(device.Invalid, "a trial lasts between %s and %s", device.FormatDuration(MinLength),
			device.FormatDuration(MaxLength))
	case t.Restart && m.Restart == nil:
		return device.Faultf(device.Denied,
			"the change needs a restart, and no service manager restarts this site: change the file on its machine")
	}
	t.State, t.Known = Running, slices.Sorted(maps.Keys(known))
	if err := m.store(t); err != nil {
		return device.Faultf(device.Unavailable, "the trial cannot be stored, and nothing is changed: %w", err)
	}
	m.trial = t
	m.begin()
	m.look() // Run looks each second from now on
	return nil
}

// ErrRuns refuses a change of the configuration during a trial.
var ErrRuns = device.Faultf(device.Busy,
	"a configuration is on trial: confirm it or take it back with agentsite config trial, or wait for its end")

// InUse says that the site uses the text on trial.
func (m *Manager) InUse() {
	m.mu.Lock()
	m.wellSince = time.Now()
	m.mu.Unlock()
	m.look()
}

// Abandon ends a trial whose text the site does not use, or not any more. Its caller has the turn. Where the file
// has not the text before, Run goes on to put that back.
func (m *Manager) Abandon(because string) {
	if text, err := os.ReadFile(m.trial.File); err == nil && string(text) == m.trial.Before {
		m.end(RolledBack, because)
		return
	}
	m.mu.Lock()
	m.undone = because
	m.mu.Unlock()
	m.look()
}

// look has Run look at the trial at once.
func (m *Manager) look() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// end ends the trial, and returns a sentence for the journal.
func (m *Manager) end(s State, because string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.trial.State != Running {
		return ""
	}
	m.trial.State, m.trial.Because, m.trial.Before = s, device.Clip(because, 1000), ""
	if err := m.store(m.trial); err != nil { // the next start finds the text before in the file, and ends it, too
		slog.Error("the end of a trial of a configuration is not stored", "err", err)
	}
	close(m.ended)
	says := fmt.Sprintf("the configuration of %s was rolled back: %s", m.trial.Who, m.trial.Because)
	if s == Replaced {
		says = fmt.Sprintf("the trial of the configuration of %s has ended: %s", m.trial.Who, m.trial.Because)
	}
	return says
}

// answer confirms the trial of the text with that digest, or takes it back, and waits for its end. It returns nil for
// a trial that ended before.
func (m *Manager) answer(ctx context.Context, digest string, keep bool) error {
	ended, err := m.take(digest, keep)
	if err != nil {
		return err
	}
	m.look()
	select {
	case <-ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unkept
}

func (m *Manager) take(digest string, keep bool) (ended <-chan struct{}, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.trial.State == "" || m.trial.Digest != digest:
		return nil, device.Faultf(device.Invalid, "no configuration with this digest is on trial")
	case m.trial.State != Running:
	case !keep:
		m.undone = "an owner took it back"
	case m.wellSince.IsZero() && m.badSince.IsZero(): // the configuration is not in use yet
		return nil, device.Faultf(device.Busy, "the configuration is not in use yet").In(time.Second)
	default:
		m.confirmed, m.unkept = true, nil
	}
	return m.ended, nil
}

// Run watches trials until ctx ends.
func (m *Manager) Run(ctx context.Context, s Site) {
	m.mu.Lock()
	if m.tried {
		m.wellSince = time.Now()
	}
	m.mu.Unlock()
	for {
		var next <-chan time.Time // nil without a trial: nothing wakes an idle site up
		if m.Running() {
			next = time.After(lookInterval)
		}
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-next:
		}
		if !m.Running() {
			continue
		}
		looking, cancel := context.WithTimeout(ctx, lookTimeout)
		problems := s.Problems(looking)
		cancel()
		if ctx.Err() != nil {
			return // the site ends, and its devices with it
		}
		if m.decide(problems) != "" && m.rollBack(ctx, s, problems) != nil && device.Sleep(ctx, retryInterval) != nil {
			return
		}
	}
}

// decide keeps the configuration, or returns why it is rolled back; "" for not yet.
func (m *Manager) decide(problems map[string]string) (because string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.trial.State != Running {
		return ""
	}
	now := time.Now()
	if !m.wellSince.IsZero() || !m.badSince.IsZero() { // it is in use
		m.problem = m.worse(problems)
		switch {
		case m.problem == "" && m.wellSince.IsZero():
			m.wellSince, m.badSince = now, time.Time{}
		case m.problem != "" && m.badSince.IsZero():
			m.wellSince, m.badSince = time.Time{}, now
		}
	}
	switch {
	case m.undone != "":
		return m.undone
	case !m.badSince.IsZero() && now.Sub(m.badSince) >= m.settle():
		return m.problem
	case m.confirmed && !m.wellSince.IsZero() && now.Sub(m.wellSince) >= m.settle():
		if !m.inUse() {
			return changed
		}
		t := m.trial
		t.State, t.Before = Kept, ""
		if m.unkept = m.store(t); m.unkept == nil { // durable before anybody is told
			m.trial = t
			close(m.ended)
			return ""
		}
	}
	switch {
	case now.Sub(m.began) < m.length():
		return ""
	case m.unkept != nil:
		return fmt.Sprintf("its confirmation could not be stored (%v)", m.unkept)
	case m.problem != "":
		return m.problem
	case m.confirmed:
		return "the site was not well for long enough"
	}
	return fmt.Sprintf("no owner confirmed it within %s", device.FormatDuration(m.length()))
}

// worse returns the problems that were not there before the trial, in a sentence.
func (m *Manager) worse(problems map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		if !slices.Contains(m.trial.Known, name) {
			all = append(all, name+" "+problems[name])
		}
	}
	return strings.Join(all, "; ")
}

// rollBack puts the text before back and has it used, unless decide says otherwise when it has the turn.
func (m *Manager) rollBack(ctx context.Context, s Site, problems map[string]string) error {
	s.Turn.Lock()
	defer s.Turn.Unlock()
	because := m.decide(problems)
	if because == "" {
		return nil // it was abandoned meanwhile, and the next one may run
	}
	err := m.putBack()
	if errors.Is(err, state.ErrChanged) {
		s.NotKept(m.end(Replaced, changed))
		return nil
	}
	if err != nil {
		slog.Error("the configuration before cannot be put back; it is tried again", "file", m.trial.File, "err", err)
		return err
	}
	if !m.trial.Restart {
		if err := s.Reload(ctx); err != nil && device.AsFault(err).Kind != device.Offline {
			slog.Error("the configuration before is in the file, but not in use: reload", "err", err)
			because += fmt.Sprintf("; the configuration before is not in use (%v): reload", err)
		}
	}
	slog.Warn("the configuration was rolled back", "because", because)
	s.NotKept(m.end(RolledBack, because))
	if m.trial.Restart && m.Restart != nil {
		m.Restart()
	}
	return nil
}

// putBack writes the text before to the file. It fails with state.ErrChanged where that has a third text.
func (m *Manager) putBack() error {
	text, err := os.ReadFile(m.trial.File)
	before := []byte(m.trial.Before)
	switch {
	case err != nil:
		return err
	case string(text) == m.trial.Before:
		return nil
	case Digest(text) != m.trial.Digest:
		return state.ErrChanged
	}
	err = m.Restore(m.trial.File, text, before) // needs no room on the disk
	if err != nil {
		err = m.Rewrite(m.trial.File, text, before)
	}
	return err
}
