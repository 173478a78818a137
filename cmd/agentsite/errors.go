package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/node/config"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"
)

// Exit codes. docs/cli.md documents them; scripts depend on them.
const (
	exitOK      = 0
	exitFailure = 1 // anything else
	exitUsage   = 2 // the command line, an argument or the configuration is wrong
	exitDenied  = 3 // the caller has no permission
	exitUnsafe  = 4 // the guard refused
	exitBusy    = 5 // another caller holds the output, or there are too many calls
	exitAway    = 6 // the site or the device does not answer
	exitUnknown = 7 // the outcome is unknown, or the call came too late
	exitSome    = 8 // some sites of a fleet did not answer, refused, or have a problem
)

// byKind maps the fault kinds.
var byKind = map[string]int{
	"invalid": exitUsage, "denied": exitDenied, "unsafe": exitUnsafe, "busy": exitBusy,
	"offline": exitAway, "unavailable": exitAway, "expired": exitUnknown, "unknown_outcome": exitUnknown,
}

// coded is an error that knows its exit code.
type coded struct {
	code int
	error
}

func (c coded) Unwrap() error { return c.error }

func usagef(format string, args ...any) error { return coded{exitUsage, fmt.Errorf(format, args...)} }

func exitCode(err error) int {
	var own coded
	var mistake *config.Error
	var mistaken state.Mistake
	var tool *client.ToolError
	var refused *client.RequestError
	var fault *device.Fault
	code := 0
	switch {
	case errors.As(err, &own):
		code = own.code
	case errors.As(err, &mistake), errors.As(err, &mistaken):
		code = exitUsage
	case errors.As(err, &tool):
		code = byKind[tool.Kind]
	case errors.As(err, &refused):
		code = byKind[refused.Kind]
	case errors.As(err, &fault):
		code = byKind[string(fault.Kind)]
	}
	if code == 0 {
		return exitFailure
	}
	return code
}

// explain formats an error for people: one line, or file:line:column lines for a configuration,
// which editors understand. site is the remote site that was called, "" for none.
func explain(err error, site string) string {
	var mistake *config.Error
	if errors.As(err, &mistake) {
		return cleanLines(err.Error())
	}
	text := plain(err)
	var tool *client.ToolError
	var refused *client.RequestError
	switch {
	case errors.As(err, &tool):
		text = strings.Replace(text, tool.Msg, saidBy(site, tool.Msg), 1)
	case errors.As(err, &refused):
		text = strings.Replace(text, refused.Msg, saidBy(site, refused.Msg), 1)
	}
	return "agentsite: " + clean(text)
}

// saidError is an error with words of an agent.
type saidError string

func (e saidError) Error() string { return string(e) }

// complain prints an error for people.
func (a *app) complain(err error) {
	site := cmp.Or(a.site, a.peer)
	text := explain(err, site)
	var tool *client.ToolError
	var refused *client.RequestError
	var said saidError
	if errors.As(err, &said) || site != "" && (errors.As(err, &tool) || errors.As(err, &refused)) {
		sayAfter(a.errs, text[:1], text[1:])
		return
	}
	a.remark(text)
}

// saidBy marks a message of a remote site, whose advice is not this program's.
func saidBy(site, sentence string) string {
	if site == "" {
		return sentence
	}
	return site + " says: " + sentence
}

// said is saidBy for the site that the flags name.
func (a *app) said(sentence string) string { return saidBy(cmp.Or(a.site, a.peer), sentence) }

// unreached adds the exit code to an error of a call and, unless it is the site's own message,
// advice.
func (a *app) unreached(err error) error {
	var web *url.Error
	why := peer.Unreached(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return coded{exitFailure, errors.New("interrupted")}
	case peer.Refused(why):
		return coded{exitAway, fmt.Errorf("the site accepts no more connections from here: %w; try again in half a minute, and close other connections to it", why)}
	case why != nil:
		return coded{exitAway, fmt.Errorf("cannot connect to the site: %w; check that it is switched on and on your network, or in a realm of yours; --wait 30s tries for longer", why)}
	case errors.Is(err, context.DeadlineExceeded):
		return coded{exitUnknown, fmt.Errorf("the site has not answered for %v and the outcome is unknown: check with agentsite read", span(patience.Seconds()))}
	case broken(err):
		return coded{exitUnknown, errors.New("the site ended before it answered; the outcome is unknown")}
	case errors.As(err, &web) && errors.As(err, new(*tls.CertificateVerificationError)):
		return coded{exitDenied, fmt.Errorf("this machine does not trust the certificate of %s (%w): use --cacert with the output of agentsite identity --certificate on the site's machine", a.url, web.Err)}
	case errors.As(err, &web) && a.url == "":
		return coded{exitAway, web.Err}
	case errors.As(err, &web):
		return coded{exitAway, fmt.Errorf("no site answers at %s: %w; start it, or correct the address", a.url, web.Err)}
	}
	return err
}

// undialled adds the exit code to an error of Dial.
func (a *app) undialled(err error) error {
	var mistaken state.Mistake
	var web *url.Error
	var refused *client.RequestError
	switch {
	case errors.As(err, &mistaken), errors.As(err, &refused):
		return err
	case errors.As(err, &web), peer.Unreached(err) != nil:
		return a.unreached(err)
	case a.url != "":
		return coded{exitUsage, err} // the address or the token file
	case errors.Is(err, fs.ErrPermission):
		return coded{exitDenied, err}
	}
	return coded{exitAway, err}
}
