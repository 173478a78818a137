package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
)

func (a *app) askCommand() *cobra.Command {
	var skill, object string
	var args []string
	var length duration
	var noWait bool
	cmd := &cobra.Command{
		Use: "ask [[SITE/]AGENT [TEXT...]]", GroupID: groupEveryday,
		Short: "Ask an agent of the site for a piece of work, a task",
		Long: `Ask an agent that the site hosts for a piece of work, a task, and follow it until its end:
each step is shown, and questions are asked on the terminal. TEXT is for agents that read;
other skills take arguments. Without AGENT, list the agents with what they can be asked for.

The task goes on when this command ends: after Ctrl-C, "agentsite tasks watch" follows it
again. A task that failed gives the exit code of its fault.`,
		Example: "  agentsite ask\n  agentsite ask water_beds\n  agentsite ask shed/water_beds --no-wait",
		PreRunE: func(_ *cobra.Command, words []string) (err error) {
			if len(words) > 0 {
				words[0], err = a.agentOf(words[0])
			}
			return err
		},
		RunE: a.onSite(func(ctx context.Context, s *session, words []string) error {
			if len(words) == 0 {
				return s.listAgents(ctx)
			}
			r := task.Request{Agent: words[0], Skill: skill, Text: strings.Join(words[1:], " ")}
			var err error
			if r.Arguments, err = skillArguments(object, args); err != nil {
				return err
			}
			if length > 0 {
				r.Seconds = new(time.Duration(length).Seconds())
			}
			t, err := ask(ctx, s, func(ctx context.Context, terms agents.Terms) (task.Task, error) {
				r.Terms = terms
				return s.Tasks().Ask(ctx, nobody, r)
			})
			if err != nil {
				return err
			}
			if noWait {
				return a.print(t, "task %s is %s: agentsite tasks watch %[1]s follows it", safeWord(t.ID, "ID"), clean(string(t.State)))
			}
			return s.follow(ctx, t)
		}),
		ValidArgsFunction: a.completeAsk,
	}
	cmd.Flags().StringVar(&skill, "skill", "", "one of the agent's skills, if it has several")
	cmd.Flags().StringArrayVar(&args, "arg", nil, "an argument of the skill, as NAME=VALUE; VALUE is JSON or a text")
	cmd.Flags().StringVar(&object, "arguments", "", "all arguments of the skill, as a JSON object")
	cmd.Flags().Var(&length, "within", "after which time the task fails, up to 24h (default: 1h)")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "print the task's ID and end")
	a.keyFlag(cmd)
	return cmd
}

// skillArguments returns the arguments of a skill as one object; nil for none.
func skillArguments(object string, pairs []string) (jsontext.Value, error) {
	if object != "" && len(pairs) > 0 {
		return nil, usagef("--arg and --arguments say the same: use one of them")
	}
	if object != "" {
		v := jsontext.Value(object)
		if !v.IsValid() || v.Kind() != '{' {
			return nil, usagef("--arguments takes a JSON object with unique names, not %.60q", object)
		}
		return v, nil
	}
	if len(pairs) == 0 {
		return nil, nil
	}
	all := make(map[string]jsontext.Value)
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if _, twice := all[name]; !ok || name == "" || twice {
			return nil, usagef("--arg takes NAME=VALUE, each name once, not %.60q", pair)
		}
		v := jsontext.Value(value)
		if !v.IsValid() {
			text, err := json.Marshal(value)
			if err != nil {
				return nil, usagef("--arg %s: %w", name, err)
			}
			v = text
		}
		all[name] = v
	}
	return json.Marshal(all, json.Deterministic(true))
}

// listAgents prints the agents that the caller may ask.
func (s *session) listAgents(ctx context.Context) error {
	all, err := within(ctx, patience, func(ctx context.Context) ([]task.Agent, error) { return s.Tasks().Agents(ctx, nobody) })
	if err != nil {
		return s.app.unreached(err)
	}
	if s.app.json {
		return printList(s.app, all, "", nil, nil)
	}
	var rows [][]string
	for _, agent := range all {
		for i, skill := range agent.Skills {
			row := []string{clean(agent.Name), clean(skill.ID), clean(skill.Description)}
			if i > 0 {
				row[0] = ""
			}
			rows = append(rows, row)
		}
	}
	return printList(s.app, rows, "no agent here can be asked by you", []string{"AGENT", "SKILL", "DESCRIPTION"}, func(row []string) []string { return row })
}

// follow shows a task as it goes on, until it has ended, and returns why it failed. It puts the
// task's questions to the person at the terminal. Connections that break are made again.
func (s *session) follow(ctx context.Context, t task.Task) error {
	f, id := follower{session: s}, t.ID
	queued := time.AfterFunc(2*time.Second, func() {
		s.app.note("task %s waits until its agent has done the tasks before it: agentsite tasks lists them", safeWord(id, "ID"))
	})
	defer queued.Stop()
	retries := 0
	for {
		err := s.Tasks().Watch(ctx, nobody, t.ID, func(now task.Task) error {
			retries = 0
			if t = now; t.State != task.Submitted {
				queued.Stop()
			}
			f.show(t)
			if t.State == task.InputRequired {
				return errAsked
			}
			return nil
		})
		switch {
		case ctx.Err() != nil:
			return s.app.detached(t)
		case errors.Is(err, errAsked):
			if t, err = f.answer(ctx, t); err != nil {
				return err
			}
		case t.State.Ended():
			return s.app.finish(t)
		case retries < maxRetries && (broken(err) || away(err) || isKind(err, device.Offline)):
			retries++
			device.Sleep(ctx, time.Second)
			s.redial()
		case err != nil:
			s.app.note("task %s goes on: agentsite tasks watch %[1]s follows it", safeWord(t.ID, "ID"))
			return s.app.unreached(err)
		}
	}
}

// errAsked ends a watch of a task that asks its asker.
var errAsked = errors.New("the task asks something")

func isKind(err error, kind device.FaultKind) bool {
	return err != nil && device.AsFault(err).Kind == kind
}

// detached ends a command that was interrupted while its task goes on.
func (a *app) detached(t task.Task) error {
	return coded{exitFailure, fmt.Errorf("interrupted; task %s goes on: agentsite tasks watch %[1]s follows it, agentsite tasks cancel %[1]s ends it", safeWord(t.ID, "ID"))}
}

// follower shows a task to people as it goes on.
type follower struct {
	*session
	steps int    // shown with their outcomes
	says  string // as shown
}

func (f *follower) show(t task.Task) {
	if f.app.json {
		return
	}
	for f.steps < len(t.Steps) && t.Steps[f.steps].Outcome != "" {
		step := t.Steps[f.steps]
		line := step.Does
		if step.Outcome != "done" {
			line = stepLine(step.Does, step.Outcome, step.Says)
		}
		sayAfter(f.app.out, clock(step.Time)+"  ", line)
		f.steps++
	}
	says := t.Says
	if t.State == task.AuthRequired {
		says = "an owner has to approve it (agentsite approve): " + f.app.said(saysOf(t))
	} else if says != "" {
		says = f.app.said(says)
	}
	if says != f.says && !t.State.Ended() {
		if f.says = says; says != "" {
			f.app.noteSaid(says)
		}
	}
}

// stepLine renders a step and its outcome.
func stepLine(does, outcome, says string) string {
	line := does + ": " + outcome
	if says != "" {
		line += ": " + says
	}
	return line
}

// answer puts the task's question to the person at the terminal. Without one it returns how to
// answer.
func (f *follower) answer(ctx context.Context, t task.Task) (task.Task, error) {
	if _, ok := f.app.terminal(); !ok || f.app.json {
		if f.app.json {
			if err := f.app.printJSON(t); err != nil {
				return t, err
			}
		}
		return t, coded{exitFailure, saidError(fmt.Sprintf("task %s asks: %s; agentsite tasks answer %[1]s ANSWER answers it", safeWord(t.ID, "ID"), f.app.said(saysOf(t))))}
	}
	q := quoted{mark: quoteMark, width: lineWidth(f.app.errs)}
	said, err := f.app.prompt(ctx, strings.TrimSuffix(q.quote(clean(f.app.said(saysOf(t)))+"\n"), "\n")+" ", false)
	if ctx.Err() != nil {
		return t, f.app.detached(t)
	}
	if err != nil {
		return t, err
	}
	next, err := f.session.answer(ctx, t, strings.TrimSpace(said))
	if exitCode(err) == exitUsage && err != nil { // no option, or answered by somebody else
		f.app.complain(err)
		return t, nil
	}
	return next, err
}

// finish prints how a task ended, and returns why it failed.
func (a *app) finish(t task.Task) error {
	if a.json {
		if err := a.printJSON(t); err != nil {
			return err
		}
	}
	switch t.State {
	case task.Completed:
		if a.json || len(t.Result) == 0 {
			return nil
		}
		if said, ok := spokenBy(t.Result); ok {
			return a.sayAnswer(t, said)
		}
		if t.Result.Kind() == '"' {
			return a.sayQuoted(oneLine(t.Result))
		}
		v := t.Result.Clone()
		if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
			return err
		}
		for line := range strings.Lines(string(v)) {
			line = strings.TrimSuffix(line, "\n")
			if err := sayAfter(a.out, line[:1], line[1:]); err != nil {
				return err
			}
		}
		return nil
	case task.Rejected:
		return coded{exitUsage, saidError("the task is rejected: " + a.said(t.Says))}
	}
	code := byKind[t.Fault]
	if code == 0 {
		code = exitFailure
	}
	why := "the task " + string(t.State)
	if t.State == task.Canceled {
		why = "the task was canceled"
	}
	if t.Says != "" {
		why += ": " + a.said(t.Says)
	}
	return coded{code, saidError(why)}
}

func (a *app) completeAsk(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completeWith(cmd, args, func(ctx context.Context, s *session) (names []string, err error) {
		all, err := s.Tasks().Agents(ctx, nobody)
		for _, agent := range all {
			names = append(names, cobra.CompletionWithDesc(clean(agent.Name), clean(agent.Description)))
		}
		return names, err
	})
}
