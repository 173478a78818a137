package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"
)

// patience bounds a call. The slowest are images, and outputs that do not follow.
const patience = 30 * time.Second

// session is a connection to a site. The caller closes it.
type session struct {
	*peer.Connection
	app *app
}

func (a *app) dial() (*session, error) {
	folder, err := a.siteFolder()
	if err == nil {
		err = a.chooseSite(folder)
	}
	if err != nil {
		return nil, err
	}
	t := a.target()
	t.Folder = folder
	c, err := peer.Dial(t)
	if err != nil {
		return nil, a.undialled(err)
	}
	return &session{c, a}, nil
}

// siteVariable is the environment variable that stands for --site.
const siteVariable = "AGENTSITE_SITE"

// chooseSite chooses a site where none is named: that of the environment or, on a machine that never ran
// one in the folder, the only one that is known.
func (a *app) chooseSite(folder state.Folder) error {
	if a.site = a.namedSite(); a.site != "" || a.peer != "" || a.url != "" || a.data != "" {
		return nil
	}
	if _, err := os.Stat(folder.Path(state.TokenFile)); !errors.Is(err, fs.ErrNotExist) { // identity creates a key
		return nil
	}
	names, demo := a.knownSites(), state.RunningDemo()
	switch {
	case len(names) == 0:
	case demo != "":
		return coded{exitAway, fmt.Errorf("agentsite demo runs here: use it with %s, or name a site that you know "+
			"with --site or %s: %s", demo.Command(), siteVariable, strings.Join(names, ", "))}
	case len(names) == 1:
		a.site = names[0]
		a.note("this is the site %s, the only one that you know", a.site)
	default:
		return coded{exitAway, fmt.Errorf("no site runs on this machine: name one that you know with --site or %s: %s",
			siteVariable, strings.Join(names, ", "))}
	}
	return nil
}

// namedSite returns the site of --site or, where no flag names one, of the environment; "" for none.
func (a *app) namedSite() string {
	if a.peer != "" || a.url != "" || a.data != "" {
		return a.site
	}
	return cmp.Or(a.site, os.Getenv(siteVariable))
}

// knownSites returns the names of the sites that the caller knows: the user, or the agent of --as.
func (a *app) knownSites() (names []string) {
	if person, err := peer.PersonNamed(a.as); err == nil {
		all, _ := person.Contacts().List()
		for _, k := range all {
			names = append(names, k.Name)
		}
	}
	return names
}

// again returns the shell command that addresses the same site, by the same user.
func (a *app) again() string {
	program := "agentsite"
	if os.Getenv("SUDO_USER") != "" && os.Geteuid() == 0 {
		program = "sudo agentsite"
	}
	for _, f := range []struct{ flag, value string }{{"site", a.site}, {"peer", a.peer}, {"data", a.data}} {
		if f.value != "" {
			return program + " --" + f.flag + " " + state.ShellQuote(f.value)
		}
	}
	return program
}

// target returns the site that the flags name, without the data folder.
func (a *app) target() peer.Target {
	return peer.Target{Site: a.site, Peer: a.peer, As: a.as, URL: a.url, TokenFile: a.tokenFile, CACert: a.caCert, CBOR: a.cbor, Version: version, Wait: a.wait, Progress: func(text string) { a.note("%s", text) }}
}

// with connects to the site that the flags name and calls do.
func (a *app) with(do func(*session) error) error {
	s, err := a.dial()
	if err != nil {
		return err
	}
	defer s.Close()
	return do(s)
}

// nobody is the principal of a call to a remote site, which authenticates the caller itself.
var nobody agents.Principal

// ask asks the site for an operation by do. It sends an idempotency key, so that a call that is
// repeated after a broken connection is made once. It waits for an owner's approval where the
// site requires one.
func ask[R any](ctx context.Context, s *session, do func(context.Context, agents.Terms) (R, error)) (none R, _ error) {
	terms := agents.Terms{Key: new(cmp.Or(s.app.key, rand.Text()))}
	begun := time.Now()
	var broke error
	for retries := 0; ; {
		res, err := within(ctx, patience, func(ctx context.Context) (R, error) { return do(ctx, terms) })
		var waits *agents.ApprovalNeeded
		switch {
		case errors.As(err, &waits):
			if terms.Approval == "" {
				s.app.note("%s (waiting for approval; Ctrl-C cancels)", s.app.said(waits.Says))
			}
			if terms.Approval = waits.State; time.Since(begun) > approvalPatience {
				return res, coded{exitUnknown, errors.New("no owner approved this in time and nothing was moved; run the command again")}
			}
		case retries < maxRetries && (broken(err) || broke != nil && away(err)):
			retries++
			broke = cmp.Or(broke, err)
		case broke != nil && (broken(err) || away(err)):
			return res, s.app.unreached(broke)
		default:
			return res, s.app.unreached(err)
		}
		if err := device.Sleep(ctx, time.Second); err != nil {
			return none, s.app.unreached(err)
		}
		if broke != nil {
			s.redial()
		}
	}
}

// approvalPatience is longer than a site waits for an approval.
const approvalPatience = 150 * time.Second

// maxRetries bounds the reconnections, one each second, to a site that ended before it
// answered: a service restarts in that time.
const maxRetries = 3

// broken reports whether a connection ended before the answer, and away whether there was none.
func broken(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func away(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) || peer.Unreached(err) != nil }

// redial replaces a broken connection, if it can.
func (s *session) redial() {
	if next, err := s.app.dial(); err == nil {
		s.Close()
		s.Connection = next.Connection
	}
}

func within[R any](ctx context.Context, limit time.Duration, do func(context.Context) (R, error)) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

// call calls a tool with arguments in JSON. One of an agent's own, which knows no keys, is not
// called again after a broken connection.
func (s *session) call(ctx context.Context, tool string, args []byte) (client.Answer, error) {
	return ask(ctx, s, func(ctx context.Context, terms agents.Terms) (client.Answer, error) {
		res, err := s.AskOnce(ctx, tool, args, client.Once{Key: *terms.Key, State: terms.Approval})
		if err != nil && broken(err) && !client.KnowsKeys(tool) {
			err = coded{exitUnknown, fmt.Errorf("the connection ended during the call (%v); whether %s did what was asked is not known", err, tool)}
		}
		return res, err
	})
}

// status asks how the site is.
func (s *session) status(ctx context.Context) (agents.Status, error) {
	return only(askSite(ctx, s, agents.Site.Status, agents.SiteRequest{}))
}

// askSite asks an operation of the site, as ask does.
func askSite[R, A any, P interface {
	*R
	SetTerms(agents.Terms)
}](ctx context.Context, s *session, do func(agents.Site, context.Context, agents.Principal, R) (A, error), r R) (A, error) {
	return ask(ctx, s, func(ctx context.Context, terms agents.Terms) (A, error) {
		P(&r).SetTerms(terms)
		return do(s.Client, ctx, nobody, r)
	})
}

// only returns the answer of the one site that was asked.
func only[T any](all agents.Answers[T], err error) (one T, _ error) {
	if err == nil && len(all.Sites) != 1 {
		err = fmt.Errorf("the answer is that of %d sites", len(all.Sites))
	}
	if err != nil {
		return one, err
	}
	return all.Sites[0], nil
}

// Answers of a site, with the methods that tables print them by.
type (
	point   agents.Point
	reading agents.Reading
	moved   agents.Output
)

// limits returns the limits of a move in words.
func (p point) limits() string {
	if p.Confirm == "" {
		return p.Limits
	}
	return strings.TrimPrefix(p.Limits+"; the "+p.Confirm+" approves each move", "; ")
}

// output reports whether a point can be set.
func (p point) output() bool { return p.Kind == "switch" || p.Kind == "level" }
