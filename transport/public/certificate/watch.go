package certificate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A look at the log of certificates: it is another's service, and a day is soon enough to end what it shows.
const (
	watchFirst   = 10 * time.Minute
	watchEvery   = 24 * time.Hour
	watchRetry   = 3 * time.Hour
	watchTimeout = time.Minute
	maxLog       = 4 << 20
	maxForeign   = 20
)

// Foreign is a certificate of the name that this site did not order.
type Foreign struct {
	Name   string // that it is for: the site's, or that of all names beside it
	Serial string
	Issuer string
	Until  time.Time
}

// logEntry is an entry of crt.sh, as far as it is read.
type logEntry struct {
	Serial string `json:"serial_number"`
	Issuer string `json:"issuer_name"`
	Until  string `json:"not_after"` // in UTC
	Common string `json:"common_name"`
	Names  string `json:"name_value"` // lines, of those that match what was asked for
}

// isOf reports whether an entry is of a name. The search of crt.sh finds names that have it within them, too.
func (e *logEntry) isOf(name string) bool {
	all := strings.Fields(e.Names + "\n" + e.Common)
	return len(all) == 0 || slices.ContainsFunc(all, func(n string) bool { return strings.EqualFold(n, name) })
}

// watch looks once a day for certificates of the name in a public log, until ctx ends.
func (m *Manager) watch(ctx context.Context) {
	for wait := watchFirst; ; {
		again := time.NewTimer(wait + rand.N(watchFirst))
		select {
		case <-ctx.Done():
			again.Stop()
			return
		case <-again.C:
		}
		wait = watchEvery
		err := m.look(ctx)
		if err != nil && ctx.Err() == nil {
			slog.Warn("the log of certificates was not read", "log", m.Log, "err", err)
			wait = watchRetry
		}
		m.mu.Lock()
		m.logErr = err
		m.mu.Unlock()
	}
}

// look asks the log.
func (m *Manager) look(ctx context.Context) error {
	now, sure := m.Now()
	m.mu.Lock()
	name := m.name
	m.mu.Unlock()
	if name == "" || !sure {
		return errors.New("the name is not reached, or the clock is not set")
	}
	names := []string{name}
	if _, zone, _ := strings.Cut(name, "."); m.Given {
		names = append(names, "*."+zone)
	}
	defer m.Client.CloseIdleConnections()
	var found []Foreign
	var failed error
	for _, of := range names {
		all, err := m.search(ctx, of)
		if err != nil {
			failed = errors.Join(failed, err)
			found = append(found, m.before(of, now)...)
			continue
		}
		found = append(found, m.judge(all, of, now)...)
	}
	m.keep(found[:min(len(found), maxForeign)])
	if failed == nil {
		m.mu.Lock()
		m.logRead = now
		m.mu.Unlock()
	}
	return failed
}

// before returns the certificates of others that were found before and count now.
func (m *Manager) before(name string, now time.Time) []Foreign {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.foreign), func(f Foreign) bool { return f.Name != name || f.Until.Before(now) })
}

// search returns the log's entries of a name.
func (m *Manager) search(ctx context.Context, name string) (all []logEntry, err error) {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.Log+"?output=json&exclude=expired&q="+url.QueryEscape(name), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "agentsite")
	answer, err := m.Client.Do(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is %s", answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxLog+1))
	if err == nil && len(text) > maxLog {
		err = fmt.Errorf("the answer is longer than %d bytes", maxLog)
	}
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(text, &all, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	return all, err
}

// judge returns the certificates of others that count now.
func (m *Manager) judge(all []logEntry, name string, now time.Time) (found []Foreign) {
	own := m.snapshot().Serials
	for _, e := range all {
		serial := serialOf(e.Serial)
		until, err := time.Parse("2006-01-02T15:04:05", strings.TrimSuffix(e.Until, "Z")) // with parts of a second or without
		if err != nil {
			until = now.Add(watchEvery) // it counts until the next look
		}
		known := slices.Contains(own, serial) || slices.ContainsFunc(found, func(f Foreign) bool { return f.Serial == serial })
		if serial == "" || known || !e.isOf(name) || until.Before(now) || len(found) == maxForeign {
			continue
		}
		found = append(found, Foreign{Name: name, Serial: serial, Issuer: e.Issuer, Until: until})
	}
	return found
}

// keep keeps what was found. Each is logged once.
func (m *Manager) keep(found []Foreign) {
	m.mu.Lock()
	before := m.foreign
	m.foreign = found
	m.mu.Unlock()
	for _, f := range found {
		if !slices.ContainsFunc(before, func(b Foreign) bool { return b.Serial == f.Serial }) {
			slog.Error("somebody else has a certificate for the public name",
				"name", f.Name, "serial", f.Serial, "issuer", f.Issuer, "until", f.Until)
		}
	}
}

// serialOf returns a serial number in hexadecimal in one spelling, "" for none.
func serialOf(text string) string {
	text = strings.TrimLeft(strings.ToLower(text), "0")
	if len(text) > 64 || strings.Trim(text, "0123456789abcdef") != "" {
		return ""
	}
	return text
}
