package main

import (
	"cmp"
	"context"
	"fmt"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/node/config"
	"agentsite/node/push"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
)

func (a *app) notifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "notify", GroupID: groupEveryday, Args: noArgs,
		Short: "Try the receivers of notifications, and choose the phones that are told",
		Long: `Try the receivers of notifications, which the configuration has under notify:.

Agents send messages of their own: a rule by "ask: notify", people by "agentsite ask notify TEXT".
What waits, and why, is in "agentsite agents".`,
		RunE: help,
	}
	cmd.AddCommand(&cobra.Command{
		Use: "test", Args: noArgs,
		Short: "Send each receiver a test message, and say whether it arrived",
		RunE: a.onSite(func(ctx context.Context, s *session, _ []string) error {
			r := task.Request{Agent: config.Notify, Arguments: jsontext.Value(`{"test":true}`)}
			t, err := ask(ctx, s, func(ctx context.Context, terms agents.Terms) (task.Task, error) {
				r.Terms = terms
				return s.Tasks().Ask(ctx, nobody, r)
			})
			if err != nil {
				return err
			}
			err = s.Tasks().Watch(ctx, nobody, t.ID, func(now task.Task) error { t = now; return nil })
			if err != nil {
				return s.app.unreached(err)
			}
			if t.State != task.Completed {
				return s.app.finish(t)
			}
			return s.app.printTried(t.Result)
		}),
	})
	cmd.AddCommand(a.notifyPhonesCommand(),
		a.notifyPhoneCommand("allow", "Tell a phone that asks for it what happens", push.TellAct, "is told from now on"),
		a.notifyPhoneCommand("forget", "Tell a phone nothing any more", push.UntellAct, "is told nothing any more"))
	return cmd
}

func (a *app) notifyPhonesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "phones", Args: noArgs,
		Short: "List the phones that are told what happens, and those that ask for it",
		RunE: a.asOwner(func(ctx context.Context, s *session, _ []string) error {
			told, err := callOwner(ctx, s, push.PhonesAct, op.None{})
			if err != nil {
				return err
			}
			const none = "no phone asks to be told; one does so in the view Access of its page"
			return printList(a, told.Phones, none, []string{"PHONE", "TOLD", "BY"}, func(p push.Phone) []string {
				says := "waits for you"
				switch {
				case p.Allowed && p.At == "":
					says = "asks no more"
				case p.Allowed:
					says = "yes"
				}
				return []string{clean(cmp.Or(p.Name, p.Key)), says, clean(p.At)}
			})
		}),
	}
}

// notifyPhoneCommand returns a command that does an act on a phone.
func (a *app) notifyPhoneCommand(word, short string, act op.Name[push.Named, op.None], done string) *cobra.Command {
	return &cobra.Command{
		Use: word + " NAME", Args: exactly("NAME"), Short: short,
		Long: short + `. NAME is the phone's name or did:key, as in "agentsite notify phones".`,
		RunE: a.asOwner(func(ctx context.Context, s *session, args []string) error {
			if _, err := callOwner(ctx, s, act, push.Named{Name: args[0]}); err != nil {
				return err
			}
			return a.print(map[string]string{"phone": args[0]}, "%s %s", clean(args[0]), done)
		}),
	}
}

// printTried prints the results of a test, and fails where a message did not arrive.
func (a *app) printTried(result jsontext.Value) error {
	type tried struct {
		Receiver string `json:"receiver"`
		Fault    string `json:"fault"`
	}
	var all []tried
	if err := json.Unmarshal(result, &all); err != nil {
		return fmt.Errorf("the site's answer is not understood: %w", err)
	}
	failed := 0
	for _, r := range all {
		if r.Fault != "" {
			failed++
		}
	}
	err := printList(a, all, "", []string{"RECEIVER", "TEST MESSAGE"}, func(r tried) []string {
		return []string{clean(r.Receiver), clean(cmp.Or(r.Fault, "arrived"))}
	})
	if err != nil {
		return err
	}
	if failed > 0 {
		return device.Faultf(device.Offline, "%d of %d receivers did not take it", failed, len(all))
	}
	return nil
}
