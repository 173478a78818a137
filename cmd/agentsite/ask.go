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

	"agentsite/cmd/internal/peer"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// patience is how long an answer may take. The slowest are pictures, and outputs
// that do not follow.
const patience = 30 * time.Second

// session is a site that is spoken to. Close it.
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

// again is how this program is called for the same site once more, for a shell.
func (a *app) again() string {
	for _, f := range []struct{ flag, value string }{{"site", a.site}, {"peer", a.peer}, {"data", a.data}} {
		if f.value != "" {
			return "agentsite --" + f.flag + " " + state.ShellQuote(f.value)
		}
	}
	return "agentsite"
}

// target is the site that the flags name, but for its folder.
func (a *app) target() peer.Target {
	return peer.Target{Site: a.site, Peer: a.peer, As: a.as, URL: a.url, TokenFile: a.tokenFile, CACert: a.caCert, CBOR: a.cbor, Version: version, Wait: a.wait, Progress: a.tell}
}

// tell says to a person what a script need not know.
func (a *app) tell(text string) { fmt.Fprintln(a.errs, "agentsite: "+clean(text)) }

// with runs do with a session.
func (a *app) with(do func(*session) error) error {
	s, err := a.dial()
	if err != nil {
		return err
	}
	defer s.Close()
	return do(s)
}

// call calls a tool, with arguments that encode as JSON, nil for none. It has a key of
// its own, so that what it repeats after a broken connection is made once. Where the
// owner has to approve it, it waits for that.
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
		var waits *client.Waits
		switch {
		case errors.As(err, &waits):
			if once.State == "" {
				fmt.Fprintf(s.app.errs, "agentsite: %s (waiting for that; Ctrl-C gives up)\n", clean(saidBy(cmp.Or(s.app.site, s.app.peer), waits.Msg)))
			}
			if once.State = waits.State; time.Since(begun) > approvalPatience {
				return res, coded{exitUnknown, errors.New("no owner has approved this in time, and nothing was moved; call again")}
			}
		case retries < mostRetries && (broken(err) || broke != nil && away(err)):
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

// approvalPatience is longer than an owner has to approve a call.
const approvalPatience = 150 * time.Second

// mostRetries is how often, at a second's distance, a site is looked for again that
// ended before it answered: as long as a service takes to start.
const mostRetries = 3

// broken reports whether a connection ended before the answer came, and away whether
// there was none.
func broken(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func away(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) || peer.Unreached(err) != nil }

// redial takes the place of a connection that broke, if it can.
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

// ask calls a tool and decodes its structured result. With --json it prints that
// result instead, and answers that all is said.
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

// printLine prints a result as one line of JSON.
func (a *app) printLine(text []byte) error {
	line := jsontext.Value(text).Clone()
	if err := line.Compact(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "%s\n", escape(line))
	return err
}

// printJSON prints a value of ours as one line of JSON.
func (a *app) printJSON(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s\n", escape(text))
	return err
}

// say prints one sentence; what the site supplied of it is cleaned.
func (a *app) say(format string, args ...any) error {
	_, err := fmt.Fprintln(a.out, clean(fmt.Sprintf(format, args...)))
	return err
}

// The structured results of the site's tools, as far as tables show them.
type (
	pointsResult struct {
		Points []point `json:"points"`
	}
	point struct {
		Point       string   `json:"point"`
		Kind        string   `json:"kind"`
		Unit        string   `json:"unit"`
		Description string   `json:"description"`
		Min         *float64 `json:"min"`
		Max         *float64 `json:"max"`
		Values      []string `json:"values"`
		Safe        any      `json:"safe"`
		MaxSeconds  float64  `json:"max_seconds"`
		Limits      string   `json:"limits"`
		Confirm     string   `json:"confirm"`
	}
	readResult struct {
		Readings []reading `json:"readings"`
	}
	reading struct {
		Point   string  `json:"point"`
		Value   any     `json:"value"`
		Unit    string  `json:"unit"`
		Time    string  `json:"time"`
		Age     float64 `json:"age_seconds"`
		Quality string  `json:"quality"`
		Why     string  `json:"why"`
	}
	historyResult struct {
		Point string    `json:"point"`
		Unit  string    `json:"unit"`
		Step  float64   `json:"step_seconds"`
		Min   float64   `json:"min"`
		Mean  float64   `json:"mean"`
		Max   float64   `json:"max"`
		Steps []summary `json:"steps"`
	}
	summary struct {
		Time time.Time `json:"time"`
		Min  float64   `json:"min"`
		Mean float64   `json:"mean"`
		Max  float64   `json:"max"`
	}
	outputResult struct {
		Output string  `json:"output"`
		Value  any     `json:"value"`
		Goal   any     `json:"going_to"`
		Safe   any     `json:"safe"`
		Left   float64 `json:"seconds_left"`
	}
	statusResult struct {
		Site    string  `json:"site"`
		Uptime  float64 `json:"uptime_seconds"`
		Stopped bool    `json:"emergency_stop"`
		Moved   []held  `json:"outputs_away_from_safe"`
	}
	held struct {
		Output string  `json:"output"`
		Left   float64 `json:"seconds_left"`
	}
)

// limits is what bounds a move, in words.
func (p point) limits() string {
	if p.Confirm == "" {
		return p.Limits
	}
	return strings.TrimPrefix(p.Limits+"; the "+p.Confirm+" approves each move", "; ")
}

// output reports whether a point can be set.
func (p point) output() bool { return p.Kind == "switch" || p.Kind == "level" }
