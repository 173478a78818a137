package rule

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/device"
)

const (
	maxNotes = 16
	maxText  = 500
	// askPause is the shortest time between two tasks that a step asks for: what an agent does can cost
	// money, and a contact that chatters must not spend it.
	askPause = time.Minute
	// noteTimeout bounds a text that is shown and the asking for a task, which a rule does not wait for.
	noteTimeout = 20 * time.Second
)

// Note is an act of a step other than a move: it shows a text, or asks an agent for a task.
type Note struct {
	Display string // or
	Agent   string
	Text    string
	Key     string // of a task, which is asked for once; "" for none
}

// note is a Note of the rule, as its Machine has it.
type note struct {
	Note
	key   string        // of its step in the rule
	delay time.Duration // of the waits before its step

	waits    bool // it is to be made at at
	due      bool // it is to be told by Notes
	at       time.Duration
	asked    bool // it was, at askedAt
	askedAt  time.Duration
	startKey string
}

// addNotes adds the texts and the task of a step, and reports whether it has any.
func (r *Rule) addNotes(c *compiled, key string, s Step, delay time.Duration, known Points) (some bool, err error) {
	some = s.Show != nil || s.Ask != "" || s.Text != ""
	switch {
	case !some:
		return false, nil
	case s.Set != nil || s.Follow != nil || s.For != 0 || s.Wait != 0 || s.Show != nil && s.Ask != "":
		return true, mistake(key, "a step does one thing; write another step, as in do: [{ set: { lamp/level: 40 } }, { show: { panel/text: \"the lamp is on\" } }]")
	case r.Toggle:
		return true, mistake(key, "a step of a toggle sets outputs; write another rule with the same on:")
	case s.Ask == "" && s.Text != "":
		return true, mistake(key, "text: belongs to ask:; a text for a display stands beside it, as in show: { panel/text: hello }")
	case s.Ask != "" && device.CheckName(s.Ask) != nil:
		return true, mistake(key, "ask takes the name of an agent of this site, not %.60q", s.Ask)
	case s.Ask == "" && len(s.Show) == 0:
		return true, mistake(key, "show takes a display with its text, such as panel/text: hello")
	}
	notes := []Note{{Agent: s.Ask, Text: s.Text}}
	if s.Ask == "" {
		notes = nil
	}
	for _, display := range slices.Sorted(maps.Keys(s.Show)) {
		if err := known.Display(display); err != nil {
			return true, mistake(key, "%w", err)
		}
		notes = append(notes, Note{Display: display, Text: s.Show[display]})
	}
	for _, n := range notes {
		switch bad := func(r rune) bool { return !strconv.IsPrint(r) }; {
		case n.Agent == "" && n.Text == "", len(n.Text) > maxText, strings.ContainsFunc(n.Text, bad):
			return true, mistake(key, "a text has 1 to %d characters that can be seen", maxText)
		case len(c.notes) == maxNotes:
			return true, mistake(key, "a rule shows texts and asks agents at most %d times", maxNotes)
		}
		c.notes = append(c.notes, note{Note: n, key: key, delay: delay})
	}
	return true, nil
}

// startNotes has the notes of the steps follow; with those of a start that has still to make some, anew.
func (m *Machine) startNotes(key string) {
	for i := range m.notes {
		n := &m.notes[i]
		n.waits, n.at, n.startKey = true, m.now.Now+n.delay, key
	}
}

// stepNotes makes the notes due whose wait is over.
func (m *Machine) stepNotes(due *sooner) {
	for i := range m.notes {
		n := &m.notes[i]
		left := n.at - m.now.Now
		switch {
		case !n.waits:
		case left > 0:
			due.in(left)
		case n.delay > 0 && m.breakWaits(n.delay):
			return
		default:
			n.waits = false
			if n.Agent != "" && n.asked && m.now.Now-n.askedAt < askPause {
				m.skipped = n.Agent + " was asked less than " + device.FormatDuration(askPause) + " before"
				continue
			}
			n.due, n.asked, n.askedAt, n.Key = true, true, m.now.Now, ""
			if n.Agent != "" && n.startKey != "" {
				n.Key = n.startKey + "/n" + strconv.Itoa(i)
			}
		}
	}
}

// Notes returns what the last Step wants to be shown and asked, once.
func (m *Machine) Notes() (all []Note) {
	for i := range m.notes {
		if n := &m.notes[i]; n.due {
			n.due, all = false, append(all, n.Note)
		}
	}
	return all
}

// makeNotes makes what the machine has noted. While the last of it is under way, it is left out: a display
// that hangs keeps nothing waiting.
func (l *live) makeNotes(ctx context.Context, all []Note) {
	if len(all) == 0 {
		return
	}
	if !l.noting.CompareAndSwap(false, true) {
		slog.Info("rule shows and asks nothing while it waits for an answer", "rule", l.self.ID)
		return
	}
	l.watching.Go(func() {
		defer l.noting.Store(false)
		for _, n := range all {
			if err := l.note(ctx, n); err != nil && ctx.Err() == nil {
				slog.Info("rule could not show or ask", "rule", l.self.ID, "display", n.Display, "agent", n.Agent, "err", err)
			}
		}
	})
}

func (l *live) note(ctx context.Context, n Note) (err error) {
	defer agent.Recover(l.self.ID, &err)
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	if n.Agent == "" {
		return l.site.Show(ctx, l.self, agents.ShowRequest{Display: n.Display, Text: n.Text})
	}
	if l.rule.world.Ask == nil {
		return device.Faultf(device.Unavailable, "no agent can be asked here")
	}
	return l.rule.world.Ask(ctx, l.self, n.Agent, n.Text, n.Key)
}
