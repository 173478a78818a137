package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"agentsite/node/acts"

	"github.com/spf13/cobra"
)

// publicTimeout bounds each step of a look at the public name. Clients wait for ten seconds.
const publicTimeout = 10 * time.Second

func (a *app) publicCommand() *cobra.Command {
	return &cobra.Command{
		Use: "public", GroupID: groupAgents, Args: noArgs,
		Short: "Show the site's public name, and what is wrong with it",
		Long: `Show the URL under which everybody reaches the site, what its certificate and its relays do,
and what is wrong. Then call the URL from this machine, step by step: DNS, TLS, the login that
it asks for, and its description.

A site has a public name with "public: on" or "public: board.example.org" under internet: in
its configuration. Programs that know only the URL sign in there, and may do what an owner
allows them: "agentsite approve" lists those that wait, and "agentsite grants" those that
signed in.`,
		RunE: a.asOwner(func(ctx context.Context, s *session, _ []string) error {
			state, err := callOwner(ctx, s, acts.PublicAct, acts.None{})
			if err != nil {
				return err
			}
			result := publicResult{PublicState: state}
			if state.URL != "" {
				result.Steps = lookAtPublic(ctx, state.URL)
			}
			if a.json {
				return a.printJSON(result)
			}
			return a.sayPublic(result)
		}),
	}
}

type publicResult struct {
	acts.PublicState
	Steps []publicStep `json:"steps,omitzero"`
}

// publicStep is a step of a call from this machine, and why it failed; "" for a good one. None follows a bad one.
type publicStep struct {
	Step string  `json:"step"`
	MS   float64 `json:"ms"`
	Err  string  `json:"error,omitzero"`
}

func (a *app) sayPublic(r publicResult) error {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if r.URL == "" {
		say("The site has no public name yet.")
	} else {
		say("%s", r.URL)
		say("programs sign in there; agentsite approve lists those that wait for you")
	}
	if r.Certificate != "" {
		say("certificate: %s, until %s, renewed from %s on", r.Certificate, local(r.Until), local(r.Next))
	}
	for _, relay := range r.Relays {
		why := relay.Why
		if why == "" {
			why = "brings callers"
		}
		say("relay %s: %s", relay.Relay, why)
	}
	if r.Target != "" {
		say("DNS: the name has to be a CNAME of %s", r.Target)
	}
	if r.CAA != "" {
		say("DNS, so that nobody else gets a certificate: %s", r.CAA)
	}
	for _, s := range r.Steps {
		if s.Err == "" {
			say("from here: %s is well (%.0f ms)", s.Step, s.MS)
		} else {
			say("from here: %s fails: %s", s.Step, s.Err)
		}
	}
	for _, p := range r.Problems {
		say("Problem: %s", p)
	}
	for _, line := range lines {
		if err := a.say("%s", line); err != nil {
			return err
		}
	}
	return nil
}

// lookAtPublic calls a public name as a client does.
func lookAtPublic(ctx context.Context, at string) (steps []publicStep) {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "https" {
		return []publicStep{{Step: "url", Err: "the site's answer is no https URL"}}
	}
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	ask := func(ctx context.Context, method, path string, want int) error {
		req, err := http.NewRequestWithContext(ctx, method, "https://"+u.Host+path, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(req)
		if err != nil {
			return err
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			return fmt.Errorf("the answer to %s %s is %d, and not %d", method, path, answer.StatusCode, want)
		}
		if want == http.StatusUnauthorized && !strings.Contains(answer.Header.Get("WWW-Authenticate"), "resource_metadata=") {
			return fmt.Errorf("the refusal of %s does not say where to log in", path)
		}
		return nil
	}
	for _, step := range []struct {
		name string
		do   func(ctx context.Context) error
	}{
		{"DNS", func(ctx context.Context) error {
			_, err := net.DefaultResolver.LookupHost(ctx, u.Hostname())
			return err
		}},
		{"TLS", func(ctx context.Context) error {
			conn, err := (&tls.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), "443"))
			if err == nil {
				conn.Close()
			}
			return err
		}},
		{"login", func(ctx context.Context) error { return ask(ctx, http.MethodPost, u.Path, http.StatusUnauthorized) }},
		{"description", func(ctx context.Context) error {
			err := ask(ctx, http.MethodGet, "/.well-known/oauth-protected-resource"+u.Path, http.StatusOK)
			if err == nil {
				err = ask(ctx, http.MethodGet, "/.well-known/oauth-authorization-server", http.StatusOK)
			}
			return err
		}},
	} {
		begun := time.Now()
		within, cancel := context.WithTimeout(ctx, publicTimeout)
		err := step.do(within)
		cancel()
		s := publicStep{Step: step.name, MS: float64(time.Since(begun).Microseconds()) / 1000}
		if err != nil {
			s.Err = err.Error()
		}
		if steps = append(steps, s); err != nil {
			break
		}
	}
	return steps
}
