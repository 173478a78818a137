package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/node/state"
	ownerclient "agentsite/transport/owner/client"

	"github.com/spf13/cobra"
)

// signIn has the words of an owner about a program that may sign in.
type signIn struct{ may, until, as string }

func (in *signIn) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&in.may, "may", "", "what a program may do that asks to sign in, such as 'read *'")
	cmd.Flags().StringVar(&in.as, "as", "", "the name of its token")
	untilFlag(cmd, &in.until, "")
}

// signInForm matches the handles of programs that ask to sign in.
var signInForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z2-7]{4}-[A-Z2-7]{4}$`) })

// signInCode returns a code as the site knows it, of what a person typed, and any other handle as it is.
func signInCode(typed string) (handle string, ok bool) {
	code := strings.ToUpper(typed)
	if len(code) == 8 {
		code = code[:4] + "-" + code[4:]
	}
	if !signInForm().MatchString(code) {
		return typed, false
	}
	return code, true
}

// allowed is printed of a program that may sign in.
type allowed struct {
	Handle string    `json:"handle"`
	Name   string    `json:"name"`
	Client string    `json:"client"`
	Host   string    `json:"returns_to"`
	May    string    `json:"may"`
	Until  time.Time `json:"until,omitzero"`
}

// allow lets the program with a code sign in. Without --may it prints the request, and the commands that answer it.
func (s *session) allow(ctx context.Context, handle string, in signIn) error {
	waiting, err := callOwner(ctx, s, acts.RequestsAct, acts.None{})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(waiting.SignIns, func(w acts.SignIn) bool { return w.Handle == handle })
	if i < 0 {
		return usagef("no program waits with the code %s; agentsite approve lists those that do", handle)
	}
	asks := waiting.SignIns[i]
	s.app.noteSaid(describeSignIn(asks))
	if in.may == "" {
		return usagef("say what it may do: %s approve %s --may 'read *'; it asks for %s", s.app.again(), handle, strings.Join(allClean(asks.Asks), ", "))
	}
	until, err := ownerclient.GrantUntil(in.until, in.may)
	if err != nil {
		return err
	}
	all, err := s.access(ctx)
	if err != nil {
		return err
	}
	name := cmp.Or(in.as, ownerclient.SignInName(all, asks))
	signed, err := ownerclient.SignToken(all, peer.OwnerKey, name, in.may, until)
	if err != nil {
		return err
	}
	if _, err := callOwner(ctx, s, acts.SignInAct, acts.NewSignIn{Handle: handle, Name: name, Grant: signed.Grant}); err != nil {
		return err
	}
	s.warnOfUnmatched(ctx, in.may)
	return s.app.print(allowed{handle, name, asks.Client, asks.Host, in.may, until},
		"allowed as %s until %s, and its browser goes on; %s revoke %[1]s ends it", name, endTime(until), s.app.again())
}

// describeSignIn describes a program that asks to sign in. Everything except the code and the network is the
// program's own statement.
func describeSignIn(in acts.SignIn) string {
	says := fmt.Sprintf("%q asks for %s; its browser shows %s, is at %s and is sent back to %s",
		clean(in.Client), strings.Join(allClean(in.Asks), ", "), clean(in.Handle), clean(in.From), clean(in.Host))
	if in.Replaces != "" {
		says += "; it takes the place of the token " + clean(in.Replaces) + ", unless --as names another"
	}
	if in.Local {
		says += ", a program on that browser's computer"
	}
	return says
}

func allClean(all []string) (out []string) {
	for _, text := range all {
		out = append(out, clean(text))
	}
	return out
}

func (s *session) showSignIns(all []acts.SignIn) error {
	return printList(s.app, all, "", []string{"CODE", "PROGRAM", "RETURNS TO", "ASKS FOR", "FROM", "STILL WAITS"}, func(in acts.SignIn) []string {
		return []string{in.Handle, in.Client, in.Host, strings.Join(in.Asks, ", "), in.From, fmt.Sprintf("%.0f s", in.Left)}
	})
}

func (s *session) printSignIn(in acts.SignIn) error {
	if !signInForm().MatchString(in.Handle) { // people paste it into a shell
		return s.printAsks(in, describeSignIn(in)+"; do not approve it: its handle is invalid")
	}
	return s.printAsks(in, describeSignIn(in)+":", "approve "+in.Handle+" --may 'read *'")
}

// printWish prints a wish, and the commands that answer it.
func (s *session) printWish(w acts.Wish) error {
	may, err := access.ParsePermissions(w.May)
	ago := device.FormatDuration(time.Duration(w.Ago) * time.Second)
	says := fmt.Sprintf("%q, sent back to %s, was refused %s %s: %s, the last %s ago",
		clean(w.Client), w.Host, w.Tool, w.Args, counted(w.Times, "time"), ago)
	// People paste them into a shell.
	if err != nil || device.CheckName(w.Token) != nil || !handleForm().MatchString(w.Handle) {
		return s.printAsks(w, says+"; do not allow it: its handle, token or permission is invalid")
	}
	until := "never"
	if !w.Until.IsZero() {
		until = w.Until.UTC().Format(time.RFC3339)
	}
	change := fmt.Sprintf("token change %s %s --until %s",
		w.Token, state.ShellQuote(access.FormatPermissions(may)), until)
	return s.printAsks(w, says+". To allow it, or to say no:", change, "approve "+w.Handle+" --deny")
}

func (a *app) tokenChangeCommand() *cobra.Command {
	var until string
	cmd := &cobra.Command{
		Use: "change NAME PERMISSION", Args: exactly("NAME", "PERMISSION"),
		Short: "Change what a token may do, while it is in use",
		Long: permissionHelp + `

The holder keeps its token, and a program that signed in stays signed in. The new permission counts from
the next call on, and ends after 90 days if it only reads, otherwise after 7 days, unless --until says
otherwise. Outputs that the former permission moved return to their safe values, unless the new one is
the same but for its end.`,
		Example: "  agentsite token change claude 'read *, set pump max 2m'",
		RunE: func(cmd *cobra.Command, args []string) error {
			end, err := ownerclient.GrantUntil(until, args[1])
			if err != nil {
				return err
			}
			return a.asOwner(func(ctx context.Context, s *session, args []string) error {
				all, err := s.access(ctx)
				if err != nil {
					return err
				}
				signed, err := ownerclient.SignToken(all, peer.OwnerKey, args[0], args[1], end)
				if err != nil {
					return err
				}
				signed.Replace = true
				m, err := callOwner(ctx, s, acts.TokenAct, signed)
				if err != nil {
					return err
				}
				s.warnOfUnmatched(ctx, args[1])
				return a.print(m, "the token %s may %s now, %s", args[0], args[1], lasts(end, cmd))
			})(cmd, args)
		},
		ValidArgsFunction: a.completeGrants,
	}
	untilFlag(cmd, &until, "")
	return cmd
}
