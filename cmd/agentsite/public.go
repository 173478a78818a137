package main

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"agentsite/node/acts"
	"agentsite/transport/public"
	"agentsite/transport/public/look"

	"github.com/spf13/cobra"
)

func (a *app) publicCommand() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use: "public", GroupID: groupOwner, Args: noArgs,
		Short: "Show the site's public name, and what is wrong with it",
		Long: `Show the URL under which everybody reaches the site, what its certificate and its relays do,
and what is wrong. Then call the URL step by step, from this machine, and through the site's
other relays, as everybody sees it: DNS, connection, TLS, the sign-in that it asks for, its
description, and whether programs in a browser may call (CORS). For a step that fails it says
what to do. Last, show what programs did that signed in, or tried to.

From this machine only public addresses are called. Where your own network's DNS answers
otherwise on purpose, name the address with --to.

A site has a public name with "public: on" or "public: board.example.org" under internet: in
its configuration. Programs that know only the URL sign in there, and may do what an owner
allows them: "agentsite approve" lists those that wait, and "agentsite grants" those that
signed in. With "oauth: on" under http: in place of a public name, show that URL, which is
not called.`,
		RunE: a.asOwner(func(ctx context.Context, s *session, _ []string) error {
			dial, err := dialerTo(to)
			if err != nil {
				return err
			}
			state, err := callOwner(ctx, s, acts.PublicAct, acts.LookAtPublic{})
			if err != nil {
				return err
			}
			result := publicResult{PublicState: state}
			if state.URL != "" && !state.Local {
				result.Steps = look.At(ctx, state.URL, dial)
				seen, err := callOwner(ctx, s, acts.PublicAct, acts.LookAtPublic{Look: true})
				if err == nil { // an older site cannot
					result.PublicState = seen
				}
			}
			if a.json {
				return a.printJSON(result)
			}
			return a.sayPublic(result)
		}),
	}
	c.Flags().StringVar(&to, "to", "", "call the name from this machine at this IP `ADDRESS`, and not where the DNS says")
	return c
}

// dialerTo connects to a name, at the address that the owner wrote, "" for those that the DNS answers.
func dialerTo(address string) (look.Dial, error) {
	var to []netip.Addr
	if address != "" {
		at, err := netip.ParseAddr(address)
		if err != nil {
			return nil, usagef("--to takes an IP address, not %q", address)
		}
		to = append(to, at)
	}
	return func(ctx context.Context, name string) (net.Conn, error) { return public.Dial(ctx, name, to...) }, nil
}

type publicResult struct {
	acts.PublicState
	Steps []acts.PublicStep `json:"steps,omitzero"` // of a call from this machine
}

func (a *app) sayPublic(r publicResult) error {
	say, others := a.say, a.sayOthers
	if r.URL == "" {
		say("The site has no public name yet.")
	} else {
		say("%s", r.URL)
		say("programs sign in there; agentsite approve lists those that wait for you")
	}
	if r.Local {
		say("it is not a public name (internet: public:), and was not called to look at it")
	}
	if r.Certificate != "" {
		say("certificate: %s, until %s", r.Certificate, local(r.Until))
	}
	if !r.Next.IsZero() {
		say("the next certificate is ordered from %s on", local(r.Next))
	}
	for _, relay := range r.Relays {
		why := relay.Why
		if why == "" {
			why = "brings callers"
		}
		others("relay %s: %s", relay.Relay, why)
	}
	if r.Target != "" {
		name := strings.TrimSuffix(strings.TrimPrefix(r.URL, "https://"), "/mcp")
		say("DNS, so that callers come to the relay: %s. CNAME %s.", name, r.Target)
	}
	if r.CAA != "" {
		say("DNS, so that nobody else gets a certificate: %s", r.CAA)
	}
	steps := func(from string, all []acts.PublicStep) {
		for _, s := range all {
			if s.Err == "" {
				others("from %s: %s is well (%.0f ms)", from, s.Step, s.MS)
				continue
			}
			others("from %s: %s fails: %s", from, s.Step, s.Err)
			if s.Do != "" {
				others("  what to do: %s", s.Do)
			}
		}
	}
	steps("here", r.Steps)
	outside := false
	for _, from := range r.Relays {
		steps("relay "+from.Relay, from.Steps)
		outside = outside || len(from.Steps) > 0
	}
	if r.URL != "" && !r.Local && !outside {
		say("it was looked at from this computer only")
		if len(r.Relays) > 0 {
			say("  what to do: a second relay with public names, under internet: relays:, looks from elsewhere")
		}
	}
	if !r.LogRead.IsZero() {
		say("certificates of others: looked for %s", local(r.LogRead))
	}
	if r.LogErr != "" {
		others("the log of certificates was not read: %s", r.LogErr)
	}
	for _, s := range r.SignIns {
		who := "a program"
		if s.Client != "" {
			who = strconv.Quote(s.Client)
		}
		if s.Err == "" {
			others("%s: %s came to %s from %s", local(s.At), who, s.Step, s.From)
		} else {
			others("%s: %s came to %s from %s and was refused: %s", local(s.At), who, s.Step, s.From, s.Err)
		}
	}
	for _, p := range r.Alarms {
		others("ALARM: %s", p)
	}
	for _, p := range r.Problems {
		others("Problem: %s", p)
	}
	return nil
}
