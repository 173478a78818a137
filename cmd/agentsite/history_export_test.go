package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/transport/mcp/client"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
)

// ramped is a site of which an output had 600 changes within ten seconds, and none before or
// after.
type ramped struct {
	begun time.Time
	cut   bool // it always says that it has more
	calls int
}

func (s *ramped) Call(_ context.Context, r rpc.Request, _ func(string, rpc.Raw)) (rpc.Raw, error) {
	if s.calls++; s.calls > 1000 {
		return rpc.Raw{}, errors.New("it is asked without end")
	}
	text, err := json.Marshal(r.Params)
	if err != nil {
		return rpc.Raw{}, err
	}
	var p struct {
		Arguments struct {
			From time.Time `json:"from"`
			To   time.Time `json:"to"`
		} `json:"arguments"`
	}
	if err := json.Unmarshal(text, &p, json.MatchCaseInsensitiveNames(true)); err != nil {
		return rpc.Raw{}, err
	}
	h := agents.History{Point: "lever/arm", Changes: []agents.Event{}}
	for i := range 600 {
		if at := s.begun.Add(time.Duration(i) * time.Second / 60); !at.Before(p.Arguments.From) && at.Before(p.Arguments.To) {
			h.Changes = append(h.Changes, agents.Event{Time: at.UTC().Format(time.RFC3339Nano), Value: device.Number(float64(i))})
		}
	}
	if n := len(h.Changes); n > 500 {
		h.Changes, h.Cut = h.Changes[n-500:], true
	}
	h.Cut = h.Cut || s.cut
	text, err = json.Marshal(map[string]any{"resultType": "complete", "content": []any{}, "structuredContent": h})
	return rpc.RawJSON(text), err
}

// TestExportPages: an export asks for less at a time where a site has much to tell, and for more
// again after that. It says what it cannot get.
func TestExportPages(t *testing.T) {
	export := func(site *ramped) (lines int, err error) {
		var out bytes.Buffer
		a := &app{out: &output{Writer: &out}, errs: io.Discard}
		s := &session{&peer.Connection{Client: client.New(site, "x", "1")}, a}
		h := history{app: a, hours: 30 * 24, step: duration(time.Minute), csv: true, events: map[string]bool{}}
		err = h.export(t.Context(), s, []string{"lever/arm"})
		return bytes.Count(out.Bytes(), []byte("\n")) - 1, err
	}
	site := &ramped{begun: time.Now().Add(-29 * 24 * time.Hour)}
	if lines, err := export(site); err != nil || lines != 600 || site.calls > 200 {
		t.Errorf("%d lines after %d calls, %v", lines, site.calls, err)
	}
	site = &ramped{begun: time.Now().Add(-29 * 24 * time.Hour), cut: true}
	if _, err := export(site); err == nil || !strings.Contains(err.Error(), "more often") {
		t.Errorf("after %d calls: %v", site.calls, err)
	}
}

// TestOpenMetricsTexts: a change of a text is two samples, however many texts there were.
func TestOpenMetricsTexts(t *testing.T) {
	var out bytes.Buffer
	m := &openMetrics{w: bufio.NewWriter(&out)}
	p := past{History: agents.History{Point: "door/card"}}
	for i := range 1000 {
		p.Changes = append(p.Changes, agents.Event{Value: device.Text(fmt.Sprintf("card %d", i/2))})
		p.times = append(p.times, time.Unix(int64(i), 0))
		m.change(p, i)
	}
	if err := m.end(); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(out.Bytes(), []byte("\n")); n != 1000+499+3 {
		t.Errorf("%d lines", n)
	}
	if got, want := label("\"\\\n\ue000"), `"\"\\\n`+"\ue000"+`"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestSortsHistory: changes that a site recorded before its clock was set back are in the order
// of time, each with its value.
func TestSortsHistory(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	p := past{times: []time.Time{at(5), at(9), at(1), at(7)}}
	for _, v := range []float64{5, 9, 1, 7} {
		p.Changes = append(p.Changes, agents.Event{Value: device.Number(v)})
	}
	p.sort()
	if !slices.IsSortedFunc(p.times, time.Time.Compare) || len(p.times) != 4 {
		t.Error(p.times)
	}
	for i, c := range p.Changes {
		if c.Value.Number() != float64(p.times[i].Unix()) {
			t.Errorf("%v at %v", c.Value, p.times[i])
		}
	}
}
