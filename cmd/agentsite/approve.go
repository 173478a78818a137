package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"time"

	"agentsite/transport/owner"

	"github.com/spf13/cobra"
)

func (a *app) approveCommand() *cobra.Command {
	var watch, deny bool
	cmd := &cobra.Command{
		Use: "approve [HANDLE]", GroupID: groupThings,
		Short: "Approve a move that waits for you, as an owner",
		Long: `An output with "confirm: owner" moves away from safe only when you approve it. This
lists the calls that wait, with who asks and for what exactly; with a handle it
approves that one, which then is made once. A call waits for two minutes, and an
approval for as long.`,
		Example: "  agentsite approve --watch\n  agentsite approve 3AJ2TS5ZWQ4C7PLM6XKD2F7V5E",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case deny && len(args) == 0:
				return fmt.Errorf("--deny takes the handle of the call")
			case watch && len(args) > 0:
				return fmt.Errorf("--watch takes no handle")
			}
			return exactly([]string{"HANDLE"}[:min(len(args), 1)]...)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.owners("approve"); err != nil {
				return err
			}
			return a.with(func(s *session) error {
				switch {
				case watch:
					return s.watchRequests(cmd.Context())
				case len(args) == 0:
					return s.showRequests(cmd.Context())
				}
				return s.decide(cmd.Context(), args[0], !deny)
			})
		},
		ValidArgsFunction: a.completeRequests,
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "show calls as they come, until Ctrl-C")
	cmd.Flags().BoolVar(&deny, "deny", false, "say no to it")
	return cmd
}

func (s *session) decide(ctx context.Context, handle string, ok bool) error {
	answer, word := s.Owner.Deny, "denied"
	if ok {
		answer, word = s.Owner.Approve, "approved"
	}
	if err := s.own(ctx, func(ctx context.Context) error { return answer(ctx, handle) }); err != nil {
		return err
	}
	if s.app.json {
		return s.app.printJSON(decided{handle, ok})
	}
	return s.app.say("%s", word)
}

// handleForm is that of the handles that a site makes.
var handleForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z2-7]{26}$`) })

type decided struct {
	Handle   string `json:"handle"`
	Approved bool   `json:"approved"`
}

func (s *session) requests(ctx context.Context) (all owner.Requests, err error) {
	err = s.own(ctx, func(ctx context.Context) error { all, err = s.Owner.Requests(ctx); return err })
	return all, err
}

func (s *session) showRequests(ctx context.Context) error {
	all, err := s.requests(ctx)
	if err != nil {
		return err
	}
	if s.app.json {
		return s.app.printJSON(all)
	}
	if len(all.Requests) == 0 {
		return s.app.say("no call waits for you")
	}
	var rows [][]string
	for _, r := range all.Requests {
		args, err := r.Args.JSONText()
		if err != nil {
			return err
		}
		rows = append(rows, []string{r.Handle, r.Who, r.Tool, string(args), strconv.Itoa(int(r.Left)) + " s"})
	}
	return table(s.app.out, []string{"HANDLE", "WHO", "TOOL", "ARGUMENTS", "STILL WAITS"}, rows)
}

// watchRequests prints each call once, when it comes. It looks once a second: nobody
// watches for long.
func (s *session) watchRequests(ctx context.Context) error {
	shown := make(map[string]bool)
	for {
		all, err := s.requests(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		waiting := make(map[string]bool)
		for _, r := range all.Requests {
			waiting[r.Handle] = true
			if shown[r.Handle] {
				continue
			}
			if err := s.announce(r); err != nil {
				return err
			}
		}
		shown = waiting
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

func (s *session) announce(r owner.Request) error {
	if s.app.json {
		return s.app.printJSON(r)
	}
	args, err := r.Args.JSONText()
	if err != nil {
		return err
	}
	if !handleForm().MatchString(r.Handle) { // it would be pasted
		return s.app.say("%s asks for %s %s, by a handle that is none; do not approve it", r.Who, r.Tool, args)
	}
	return s.app.say("%s asks for %s %s: %s approve %s", r.Who, r.Tool, args, s.app.again(), r.Handle)
}

func (a *app) completeRequests(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var handles []string
	if len(args) == 0 && a.url == "" {
		ctx, cancel := context.WithTimeout(cmd.Context(), completePatience)
		defer cancel()
		a.with(func(s *session) error {
			all, err := s.requests(ctx)
			for _, r := range all.Requests {
				handles = append(handles, cobra.CompletionWithDesc(clean(r.Handle), clean(r.Who+" asks for "+r.Tool)))
			}
			return err
		})
	}
	return handles, cobra.ShellCompDirectiveNoFileComp
}
