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
	Serial string
	Issuer string
	Until  time.Time
}

// logEntry is an entry of crt.sh, as far as it is read.
type logEntry struct {
	Serial string `json:"serial_number"`
	Issuer string `json:"issuer_name"`
	Until  string `json:"not_after"` // in UTC
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
		if err := m.look(ctx); err != nil {
			slog.Warn("the log of certificates was not read", "log", m.Log, "err", err)
			wait = watchRetry
		}
	}
}

// look asks the log.
func (m *Manager) look(ctx context.Context) error {
	now, sure := m.Now()
	m.mu.Lock()
	name, own := m.name, slices.Clone(m.stored.Serials)
	m.mu.Unlock()
	if name == "" || !sure {
		return errors.New("the name is not reached, or the clock is not set")
	}
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.Log+"?output=json&exclude=expired&q="+url.QueryEscape(name), nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "agentsite")
	answer, err := m.Client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer is %s", answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxLog))
	if err != nil {
		return err
	}
	var all []logEntry
	if err := json.Unmarshal(text, &all, jsontext.AllowInvalidUTF8(true)); err != nil {
		return err
	}
	m.judge(all, own, now)
	return nil
}

// judge keeps the certificates of others that count now. Each is logged once.
func (m *Manager) judge(all []logEntry, own []string, now time.Time) {
	var found []Foreign
	for _, e := range all {
		serial := serialOf(e.Serial)
		until, err := time.Parse("2006-01-02T15:04:05", e.Until)
		if err != nil {
			until = now.Add(watchEvery) // it counts until the next look
		}
		known := slices.Contains(own, serial) || slices.ContainsFunc(found, func(f Foreign) bool { return f.Serial == serial })
		if serial == "" || known || until.Before(now) || len(found) == maxForeign {
			continue
		}
		found = append(found, Foreign{Serial: serial, Issuer: e.Issuer, Until: until})
	}
	m.mu.Lock()
	before := m.foreign
	m.foreign = found
	m.mu.Unlock()
	for _, f := range found {
		if !slices.ContainsFunc(before, func(b Foreign) bool { return b.Serial == f.Serial }) {
			slog.Error("somebody else has a certificate for the public name", "serial", f.Serial, "issuer", f.Issuer, "until", f.Until)
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
