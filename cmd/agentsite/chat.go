package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/node/acts"

	"github.com/spf13/cobra"
)

func (a *app) chatCommand() *cobra.Command {
	var conversation string
	cmd := &cobra.Command{
		Use: "chat [SITE/]AGENT [TEXT...]", GroupID: groupEveryday,
		Short: "Talk to an agent that understands words",
		Long: `Talk to an agent of the site, or of another site that you know. Each line that you type is one
task of the agent, which knows the conversation before it; the site keeps it for a week. With
TEXT, say that and end.

Under each answer stands what the site did for it, from the site's own record: what is not there
was not done, whatever the agent says. While the agent works, these can be typed:

  /stop      emergency stop: all outputs to safe, at once
  /cancel    end the task before its next step
  y, n       approve or deny the call that was shown, if you are an owner

and at any time /history for the conversation and /quit.`,
		Example: "  agentsite chat gardener\n  agentsite chat shed/gardener is the vent open?\n  agentsite chat gardener --continue 5DKQ2X7A",
		Args: func(cmd *cobra.Command, args []string) error {
			return exactly("AGENT")(cmd, args[:min(len(args), 1)])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := a.agentOf(args[0])
			if err != nil {
				return err
			}
			return a.with(func(s *session) error {
				c := &chatting{session: s, agent: name, conversation: cmp.Or(conversation, rand.Text()[:8])}
				_, c.person = a.terminal()
				if len(args) > 1 {
					return c.say(cmd.Context(), strings.Join(args[1:], " "), nil)
				}
				return c.run(cmd.Context())
			})
		},
		ValidArgsFunction: a.completeAsk,
	}
	cmd.Flags().StringVar(&conversation, "continue", "", "a conversation of before, by the name that was printed")
	return cmd
}

// agentOf returns the agent of [SITE/]AGENT, and has the command use that site.
func (a *app) agentOf(name string) (string, error) {
	site, agent, ok := strings.Cut(name, "/")
	switch {
	case !ok:
		return name, nil
	case a.url != "" || a.data != "" || a.peer != "" || a.site != "" && a.site != site:
		return "", usagef("%s/ names the site: leave out --site, --peer, --url and --data", clean(site))
	}
	a.site = site
	return agent, nil
}

// chatting is a conversation with an agent.
type chatting struct {
	*session
	agent, conversation string
	person              bool // at a terminal
}

// run says each line that is typed.
func (c *chatting) run(ctx context.Context) error {
	next, lines := c.app.typist(ctx)
	c.app.note("conversation %s with %s; /quit ends it, and --continue %[1]s goes on with it", c.conversation, c.agent)
	for {
		line, err := next()
		switch {
		case err == io.EOF || line == "/quit":
			return nil
		case err != nil:
			return err
		case line == "":
		case line == "/stop":
			err = c.stop(ctx)
		case line == "/history":
			err = c.history(ctx)
		case strings.HasPrefix(line, "/"):
			c.app.note("there are /stop, /cancel (while it works), /history and /quit")
		default:
			if c.person {
				err = c.say(ctx, line, lines)
			} else {
				err = c.say(ctx, line, nil)
			}
		}
		if err != nil {
			if !c.person || ctx.Err() != nil {
				return err
			}
			c.app.complain(err)
		}
	}
}

// say sends a message, and shows the agent's steps until it has answered. lines receives the lines
// typed meanwhile; it may be nil.
func (c *chatting) say(ctx context.Context, text string, lines <-chan string) error {
	t, err := ask(ctx, c.session, func(ctx context.Context, terms agents.Terms) (task.Task, error) {
		return c.Tasks().Ask(ctx, nobody, task.Request{Agent: c.agent, Text: text, Context: c.conversation, Terms: terms})
	})
	if err != nil {
		return err
	}
	watching, end := context.WithCancel(ctx)
	defer end()
	changes, ended := make(chan task.Task), make(chan error, 1)
	go func() {
		ended <- c.Tasks().Watch(watching, nobody, t.ID, func(now task.Task) error {
			select {
			case changes <- now:
				return nil
			case <-watching.Done():
				return watching.Err()
			}
		})
	}()
	v := c.view()
	for !t.State.Ended() {
		select {
		case t = <-changes:
			v.show(ctx, t)
		case line, ok := <-lines:
			if !ok {
				lines = nil
				continue
			}
			if err := v.meanwhile(ctx, t, strings.TrimSpace(line)); err != nil {
				c.app.complain(err)
			}
		case err := <-ended:
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			v.line()
			c.app.note("task %s goes on: agentsite tasks watch %[1]s follows it", safeWord(t.ID, "ID"))
			return c.app.unreached(err)
		case <-ctx.Done():
			v.line()
			return c.app.detached(t)
		}
	}
	return v.finish(t)
}

// stop is the emergency stop.
func (c *chatting) stop(ctx context.Context) error {
	done, err := only(askSite(ctx, c.session, agents.Site.Stop, agents.SiteRequest{}))
	if err != nil {
		return stopFailed(err)
	}
	return c.app.say("%s", stopped(done))
}

// history prints the conversation.
func (c *chatting) history(ctx context.Context) error {
	all, err := c.tasks(ctx)
	if err != nil {
		return err
	}
	slices.Reverse(all)
	for _, t := range all {
		if t.Context != c.conversation || t.Agent != c.agent {
			continue
		}
		if t, err = c.task(ctx, t.ID); err != nil {
			return err
		}
		sayAfter(c.app.out, "> ", t.Text)
		if said, ok := spokenBy(t.Result); ok {
			err = c.app.sayAnswer(t, said)
		} else {
			err = sayAfter(c.app.out, "(", string(t.State)+" "+t.Says+")")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// view shows a task while its agent works on it.
type view struct {
	*chatting
	says, asks string
	steps      int    // that were shown
	written    string // the text as it stands on the terminal
	broken     bool   // it has ended: what comes next is another one
	printing   quoted // the answer
	handle     string // of the call that was shown to the owner at this terminal, to be approved or denied
}

// view returns what shows a task of the conversation at this terminal.
func (c *chatting) view() view {
	return view{chatting: c, printing: quoted{mark: quoteMark, width: lineWidth(c.app.errs)}}
}

func (v *view) show(ctx context.Context, t task.Task) {
	if v.app.json || t.State.Ended() {
		return
	}
	if v.person {
		for ; v.steps < len(t.Steps) && t.Steps[v.steps].Outcome != ""; v.steps++ {
			s := t.Steps[v.steps]
			v.line()
			v.app.noteSaid(stepLine(s.Does, s.Outcome, s.Says))
		}
		if t.Says != v.says && t.Says != "" {
			v.line()
			v.app.noteSaid(v.app.said(t.Says))
		}
		v.says = t.Says
		rest, more := strings.CutPrefix(t.Partial, v.written)
		if t.Partial == "" { // the model calls a tool, or the task is about to end
			v.broken = true
		} else if v.broken || !more {
			v.line()
			rest = t.Partial
		}
		if t.Partial != "" {
			fmt.Fprint(v.app.errs, v.printing.quote(rest))
			v.written, v.broken = t.Partial, false
		}
	}
	asks := ""
	if !v.offer(ctx, t) && (t.State == task.InputRequired || t.State == task.AuthRequired) {
		asks = v.app.said(saysOf(t))
	}
	if asks != v.asks && asks != "" {
		v.line()
		v.app.noteSaid(asks)
	}
	v.asks = asks
}

// offer shows the call that waits for an owner's approval to an owner at this terminal, and reports
// whether it did. A line typed then is about that call, whatever waits later.
func (v *view) offer(ctx context.Context, t task.Task) bool {
	before := v.handle
	v.handle = ""
	if t.State != task.AuthRequired || !v.person {
		return false
	}
	all, err := callOwner(ctx, v.session, acts.RequestsAct, acts.None{})
	if err != nil { // no owner
		return false
	}
	for _, r := range all.Requests {
		if isFor(r, t.ID) && handleForm().MatchString(r.Handle) {
			if v.handle = r.Handle; r.Handle != before {
				v.line()
				v.app.noteSaid(fmt.Sprintf("%s asks for %s %s: y approves it, n denies it", askerOf(r), r.Tool, argumentsOf(r)))
			}
			return true
		}
	}
	return false
}

// isFor reports whether an agent of the site makes a call for a task. Callers from elsewhere, by a
// key or a token, can write any text into Via.
func isFor(r acts.Request, task string) bool {
	return isHosted(r.Who) && slices.Contains(r.Via, "task/"+task)
}

// meanwhile handles a line typed while the agent works.
func (v *view) meanwhile(ctx context.Context, t task.Task, line string) error {
	v.printing.column = 0 // the person's Enter has ended the line
	switch {
	case line == "":
		return nil
	case line == "/stop":
		return v.stop(ctx)
	case line == "/cancel":
		_, err := within(ctx, patience, func(ctx context.Context) (task.Task, error) { return v.Tasks().Cancel(ctx, nobody, t.ID) })
		return v.app.unreached(err)
	case t.State == task.InputRequired:
		_, err := v.answer(ctx, t, line)
		return err
	case v.handle != "" && (line == "y" || line == "n"):
		err := v.decide(ctx, v.handle, line == "y")
		if err == nil {
			v.handle = ""
		}
		return err
	case line == "y" || line == "n":
		v.app.note("no call that was shown here waits for you")
		return nil
	}
	v.app.note("it works still; /cancel ends that, and /stop stops all outputs")
	return nil
}

// line ends a line of the answer that is being written.
func (v *view) line() {
	if v.printing.column > 0 || v.printing.held != "" {
		fmt.Fprint(v.app.errs, v.printing.quote("\n"))
	}
}

// restOf returns what a text has after what was written of it, if it begins with that. Blanks around the text do
// not count, and those at the end of what was written are part of it.
func restOf(text, written string) (rest string, ok bool) {
	text = strings.TrimSpace(text)
	if rest, ok = strings.CutPrefix(text, strings.TrimLeft(written, " \t\r\n")); ok {
		return rest, true
	}
	return "", text == strings.TrimSpace(written)
}

// finish shows how the task ended.
func (v *view) finish(t task.Task) error {
	said, ok := spokenBy(t.Result)
	rest, shown := restOf(said.Text, v.written)
	shown = shown && v.written != "" && (!v.broken || rest == "")
	if shown {
		fmt.Fprint(v.app.errs, v.printing.quote(rest))
	}
	v.line()
	if v.app.json || !ok || t.State != task.Completed {
		for _, s := range t.Steps { // of a failed task
			v.app.noteSaid(stepLine(s.Does, s.Outcome, s.Says))
		}
		return v.app.finish(t)
	}
	if shown && v.app.out.terminal() {
		said.Text = ""
	}
	return v.app.sayAnswer(t, said)
}
