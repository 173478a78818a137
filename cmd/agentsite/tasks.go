package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"agentsite/agents/task"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
)

func (a *app) tasksCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "tasks", GroupID: groupEveryday, Args: noArgs,
		Short: "List the tasks that you asked agents for",
		Long: `List the tasks that you asked the site's agents for, the newest first; an owner sees
everybody's. Those that have not ended come first. A task goes on whether its asker is connected or not, and after a restart. The
site keeps it for a week after its end.`,
		Example: "  agentsite tasks\n  agentsite tasks show 3f2c\n  agentsite tasks answer 3f2c yes",
		RunE: a.onSite(func(ctx context.Context, s *session, _ []string) error {
			more := 0
			all, err := within(ctx, patience, func(ctx context.Context) (all []task.Task, err error) {
				if h, ok := s.Tasks().(interface {
					Listed(context.Context) ([]task.Task, int, error)
				}); ok {
					all, more, err = h.Listed(ctx)
					return all, err
				}
				return s.Tasks().List(ctx, nobody)
			})
			if err != nil {
				return s.app.unreached(err)
			}
			if more > 0 {
				defer fmt.Fprintf(a.errs, "and %d older tasks, which have ended\n", more)
			}
			return printList(a, all, "there are no tasks: agentsite ask asks an agent for one",
				[]string{"TASK", "AGENT", "STATE", "SINCE", "SAYS"}, func(t task.Task) []string {
					return []string{t.ID, clean(t.Agent), string(t.State), since(t.Changed), clean(saysOf(t))}
				})
		}),
	}
	cmd.AddCommand(
		a.taskCommand("show TASK", "Show a task with its steps", func(ctx context.Context, s *session, id string) error {
			t, err := s.task(ctx, id)
			if err != nil {
				return err
			}
			return a.printTask(t)
		}),
		a.taskCommand("watch TASK", "Follow a task until it has ended", func(ctx context.Context, s *session, id string) error {
			t, err := s.task(ctx, id)
			if err != nil {
				return err
			}
			return s.follow(ctx, t)
		}),
		a.taskCommand("cancel TASK", "End a task before its next step, and release what it holds", func(ctx context.Context, s *session, id string) error {
			t, err := s.changeTask(ctx, id, func(ctx context.Context, id string) (task.Task, error) { return s.Tasks().Cancel(ctx, nobody, id) })
			if err != nil {
				return err
			}
			return a.print(t, "task %s is %s", t.ID, t.State)
		}),
		a.answerCommand(),
	)
	return cmd
}

func (a *app) answerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "answer TASK ANSWER", Short: "Answer the question of a task", Args: exactly("TASK", "ANSWER"),
		RunE: a.onSite(func(ctx context.Context, s *session, args []string) error {
			asked, err := s.task(ctx, args[0])
			if err != nil {
				return err
			}
			if asked.State != task.InputRequired {
				return usagef("the task asks nothing now: it is %s", asked.State)
			}
			t, err := s.answer(ctx, asked, args[1])
			if err != nil {
				return err
			}
			return a.print(t, "task %s is %s", t.ID, t.State)
		}),
		ValidArgsFunction: a.completeTasks,
	}
}

// taskCommand is a command about one task.
func (a *app) taskCommand(use, short string, do func(context.Context, *session, string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: exactly("TASK"),
		RunE:              a.onSite(func(ctx context.Context, s *session, args []string) error { return do(ctx, s, args[0]) }),
		ValidArgsFunction: a.completeTasks,
	}
}

// tasks lists the tasks that the caller may see.
func (s *session) tasks(ctx context.Context) ([]task.Task, error) {
	all, err := within(ctx, patience, func(ctx context.Context) ([]task.Task, error) { return s.Tasks().List(ctx, nobody) })
	return all, s.app.unreached(err)
}

// task returns the task with an ID, or with the only ID that begins so.
func (s *session) task(ctx context.Context, id string) (task.Task, error) {
	return s.changeTask(ctx, id, func(ctx context.Context, id string) (task.Task, error) { return s.Tasks().Task(ctx, nobody, id) })
}

// changeTask calls do for a task, by its ID or how that begins.
func (s *session) changeTask(ctx context.Context, id string, do func(context.Context, string) (task.Task, error)) (task.Task, error) {
	t, err := within(ctx, patience, func(ctx context.Context) (task.Task, error) { return do(ctx, id) })
	if err == nil || exitCode(err) != exitUsage || len(id) < 4 {
		return t, s.app.unreached(err)
	}
	all, listed := s.tasks(ctx)
	var found []string
	for _, other := range all {
		if strings.HasPrefix(other.ID, id) {
			found = append(found, other.ID)
		}
	}
	if listed != nil || len(found) != 1 || found[0] == id {
		return t, err
	}
	t, err = within(ctx, patience, func(ctx context.Context) (task.Task, error) { return do(ctx, found[0]) })
	return t, s.app.unreached(err)
}

func (s *session) answer(ctx context.Context, t task.Task, answer string) (task.Task, error) {
	t, err := within(ctx, patience, func(ctx context.Context) (task.Task, error) {
		return s.Tasks().Answer(ctx, nobody, t.ID, t.Question.ID, answer)
	})
	return t, s.app.unreached(err)
}

// printTask prints a task with its steps.
func (a *app) printTask(t task.Task) error {
	if a.json {
		return a.printJSON(t)
	}
	agent := t.Agent
	if t.Skill != "" {
		agent += " (" + t.Skill + ")"
	}
	rows := [][]string{{"task", t.ID}, {"agent", agent}, {"state", string(t.State)}, {"says", saysOf(t)}, {"asked by", t.Asker}, {"since", since(t.Created)}, {"text", t.Text}, {"arguments", string(t.Arguments)}, {"result", oneLine(t.Result)}}
	for _, row := range rows {
		if row[1] != "" {
			tableRow(a.out, []string{"", ""}, pad(row[0], len("arguments")), row[1])
		}
	}
	if len(t.Steps) == 0 {
		return nil
	}
	var steps [][]string
	for _, step := range t.Steps {
		steps = append(steps, []string{clock(step.Time), clean(step.Does), clean(step.Outcome), clean(step.Says)})
	}
	a.say("")
	return table(a.out, []string{"TIME", "STEP", "OUTCOME", "SAYS"}, steps)
}

// saysOf returns the message of a task, or its question.
func saysOf(t task.Task) string {
	if t.Question == nil || t.State.Ended() {
		return t.Says
	}
	says := t.Question.Text
	if len(t.Question.Options) > 0 {
		says += " (" + strings.Join(t.Question.Options, ", ") + ")"
	}
	return says
}

// oneLine returns a JSON value in one line, a text without its quotes.
func oneLine(v jsontext.Value) string {
	v = v.Clone()
	if v.Kind() == '"' {
		if text, err := jsontext.AppendUnquote(nil, v); err == nil {
			return string(text)
		}
	}
	if v.Compact() != nil {
		return ""
	}
	return string(v)
}

// since returns how long ago a time was that a site told; "" for none.
func since(text string) string {
	at, ok := told(text)
	if !ok {
		return ""
	}
	return span(max(0, time.Since(at).Truncate(time.Second).Seconds()))
}

// clock returns the local time of day of a time that a site told; "" for none.
func clock(text string) string {
	at, ok := told(text)
	if !ok {
		return ""
	}
	return at.In(time.Local).Format(time.TimeOnly)
}

// told returns a time that a site told, if its clock was set.
func told(text string) (at time.Time, ok bool) {
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil && at.Year() >= 2026
}

func (a *app) completeTasks(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completeWith(cmd, args, func(ctx context.Context, s *session) (ids []string, err error) {
		all, err := s.Tasks().List(ctx, nobody)
		for _, t := range all {
			ids = append(ids, cobra.CompletionWithDesc(t.ID, clean(t.Agent+": "+string(t.State))))
		}
		return ids, err
	})
}
