package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/peer"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"

	"github.com/go-json-experiment/json"
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

// again returns the shell command that addresses the same site.
func (a *app) again() string {
	for _, f := range []struct{ flag, value string }{{"site", a.site}, {"peer", a.peer}, {"data", a.data}} {
		if f.value != "" {
			return "agentsite --" + f.flag + " " + state.ShellQuote(f.value)
		}
	}
	return "agentsite"
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

// call calls a tool with arguments that encode as JSON, nil for none. It sends an idempotency
// key, so that a call that is repeated after a broken connection is made once. It waits for an
// owner's approval where the site requires one.
func (s *session) call(ctx context.Context, tool string, args any) (client.Answer, error) {
	if args == nil {
		args = struct{}{}
	}
	text, err := json.Marshal(args)
	if err != nil {
		return client.Answer{}, err
	}
	once := client.Once{Key: cmp.Or(s.app.key, rand.Text())}
	begun := time.Now()
	var broke error
	for retries := 0; ; {
		res, err := s.askOnce(ctx, tool, text, once)
		var waits *agents.ApprovalNeeded
		switch {
		case errors.As(err, &waits):
			if once.State == "" {
				s.app.note("%s (waiting for approval; Ctrl-C cancels)", saidBy(cmp.Or(s.app.site, s.app.peer), waits.Says))
			}
			if once.State = waits.State; time.Since(begun) > approvalPatience {
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
		select {
		case <-ctx.Done():
			return client.Answer{}, s.app.unreached(ctx.Err())
		case <-time.After(time.Second):
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

func (s *session) askOnce(ctx context.Context, tool string, args []byte, once client.Once) (client.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.AskOnce(ctx, tool, args, once)
}

// ask calls a tool and decodes its structured result. With --json it prints the result instead
// and returns true.
func (s *session) ask(ctx context.Context, tool string, args, into any) (said bool, err error) {
	res, err := s.call(ctx, tool, args)
	if err != nil {
		return false, err
	}
	if s.app.json {
		return true, s.app.printLine(res.JSON)
	}
	if err := json.Unmarshal(res.JSON, into); err != nil {
		return false, fmt.Errorf("the site's answer to %s cannot be read: %w", tool, err)
	}
	return false, nil
}

// What a site answers, with what tables show of it.
type (
	point        agents.Point
	pointsResult struct {
		Points []point `json:"points"`
	}
	reading    agents.Reading
	readResult struct {
		Readings []reading `json:"readings"`
	}
	outputResult agents.Output
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
