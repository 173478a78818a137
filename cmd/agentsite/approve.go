package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/node/acts"

	"github.com/spf13/cobra"
)

func (a *app) approveCommand() *cobra.Command {
	var watch, deny bool
	var in signIn
	cmd := &cobra.Command{
		Use: "approve [HANDLE]", GroupID: groupOwner,
		Short: "Approve a move, or a program that asks for something",
		Long: `List the calls that wait for an owner's approval, or approve the one with a handle, which
is then made once. An output with "confirm: owner" moves away from its safe value only
with an approval. A call waits for two minutes unless the configuration has approvals: { wait: … }; an approval lasts two minutes.

A program that knows only the site's URL may ask to sign in, if the configuration has a
public name or "oauth: on" under http:. Its browser shows a code, which is its handle here, and waits
for ten minutes. Approve it only if you see the same code in your own browser, and say
with --may what it may do. That ends after 90 days if it only reads, otherwise after 7,
unless --until says otherwise. "agentsite grants" lists it, "agentsite token change"
changes what it may do, and "agentsite revoke" ends it at once.

A call of such a program that its permission does not cover is refused, and listed here for an
hour, with the command that allows it. --deny says no, for an hour, too.`,
		Example: "  agentsite approve --watch\n  agentsite approve 3AJ2TS5ZWQ4C7PLM6XKD2F7V5E\n" +
			"  agentsite approve K7QF-2M9T --may 'read *, set pump max 2m 10/h' --until fri",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case deny && len(args) == 0:
				return errors.New("--deny needs the handle of a call")
			case watch && len(args) > 0:
				return errors.New("--watch takes no handle")
			case in != signIn{} && (len(args) == 0 || deny):
				return errors.New("--may, --until and --as are for the code of a program that you let sign in")
			}
			return optional("HANDLE")(cmd, args)
		},
		RunE: a.asOwner(func(ctx context.Context, s *session, args []string) error {
			switch {
			case watch:
				return s.watchRequests(ctx)
			case len(args) == 0:
				return s.showRequests(ctx)
			}
			handle, isCode := signInCode(args[0])
			switch {
			case isCode && !deny:
				return s.allow(ctx, handle, in)
			case in != signIn{}:
				return usagef("%s is no code of a program: a call is approved without --may, --until and --as, once", handle)
			}
			return s.decide(ctx, handle, !deny)
		}),
		ValidArgsFunction: a.completeRequests,
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "print calls as they come, until Ctrl-C")
	cmd.Flags().BoolVar(&deny, "deny", false, "refuse the call, or the program")
	in.flags(cmd)
	return cmd
}

func (s *session) decide(ctx context.Context, handle string, ok bool) error {
	method, word := acts.DenyAct, "denied"
	if ok {
		method, word = acts.ApproveAct, "approved"
	}
	if _, err := callOwner(ctx, s, method, acts.Name{Name: handle}); err != nil {
		return err
	}
	return s.app.print(decided{handle, ok}, "%s", word)
}

// handleForm matches the handles that a site creates.
var handleForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z2-7]{26}$`) })

type decided struct {
	Handle   string `json:"handle"`
	Approved bool   `json:"approved"`
}

func (s *session) showRequests(ctx context.Context) error {
	all, err := callOwner(ctx, s, acts.RequestsAct, acts.None{})
	if err != nil {
		return err
	}
	if s.app.json {
		return s.app.printJSON(all)
	}
	if len(all.SignIns) > 0 {
		if err := s.showSignIns(all.SignIns); err != nil {
			return err
		}
	}
	for _, w := range all.Wishes {
		s.printWish(w)
	}
	if len(all.SignIns)+len(all.Wishes) > 0 && len(all.Requests) == 0 {
		return nil
	}
	return printList(s.app, all.Requests, "nothing waits for your approval",
		[]string{"HANDLE", "WHO", "TOOL", "ARGUMENTS", "STILL WAITS"}, func(r acts.Request) []string {
			return []string{r.Handle, askerOf(r), r.Tool, argumentsOf(r), strconv.Itoa(int(r.Left)) + " s"}
		})
}

// askerOf returns the caller of a request, and the chain of callers behind it.
func askerOf(r acts.Request) string {
	if len(r.Via) == 0 {
		return called(r.Who)
	}
	return called(r.Who) + " through " + strings.Join(allCalled(r.Who, r.Via), ", ")
}

// argumentsOf returns a call's arguments as JSON.
func argumentsOf(r acts.Request) string {
	if r.Holds > 0 { // its limits may end it before the time that was asked for
		return fmt.Sprintf("%s, would hold it for %.0f s now", r.Args, r.Holds)
	}
	return string(r.Args)
}

// watchRequests prints each call once, when it comes. It polls each second: an owner watches
// for a short time.
func (s *session) watchRequests(ctx context.Context) error {
	shown := make(map[string]bool)
	for {
		all, err := callOwner(ctx, s, acts.RequestsAct, acts.None{})
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
			if err := s.printRequest(r); err != nil {
				return err
			}
		}
		for _, in := range all.SignIns {
			waiting[in.Handle] = true
			if shown[in.Handle] {
				continue
			}
			if err := s.printSignIn(in); err != nil {
				return err
			}
		}
		for _, w := range all.Wishes {
			waiting[w.Handle] = true
			if shown[w.Handle] {
				continue
			}
			if err := s.printWish(w); err != nil {
				return err
			}
		}
		shown = waiting
		if device.Sleep(ctx, time.Second) != nil {
			return nil
		}
	}
}

func (s *session) printRequest(r acts.Request) error {
	says := fmt.Sprintf("%s asks for %s %s", askerOf(r), r.Tool, argumentsOf(r))
	if !handleForm().MatchString(r.Handle) { // people paste it into a shell
		return s.printAsks(r, says+", with an invalid handle; do not approve it")
	}
	return s.printAsks(r, says+":", "approve "+r.Handle)
}

// printAsks prints v with --json, and else what asks for an owner's word, and the commands that answer it below.
func (s *session) printAsks(v any, says string, commands ...string) error {
	if s.app.json {
		return s.app.printJSON(v)
	}
	err := s.app.sayOthers("%s", says)
	for _, c := range commands {
		s.app.say("  %s %s", s.app.again(), c)
	}
	return err
}

func (a *app) completeRequests(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completeWith(cmd, args, func(ctx context.Context, s *session) (names []string, err error) {
		all, err := callOwner(ctx, s, acts.RequestsAct, acts.None{})
		for _, r := range all.Requests {
			names = append(names, cobra.CompletionWithDesc(clean(r.Handle), clean(r.Who+" asks for "+r.Tool)))
		}
		for _, in := range all.SignIns {
			names = append(names, cobra.CompletionWithDesc(clean(in.Handle), clean(in.Client+" asks to sign in")))
		}
		for _, w := range all.Wishes {
			names = append(names, cobra.CompletionWithDesc(clean(w.Handle), clean(w.Client+" asks for "+w.Tool)))
		}
		return names, err
	})
}
