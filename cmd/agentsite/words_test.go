package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/transport/mcp/client"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
)

// TestRelayFlags: relay addresses come from others, and are pasted into a shell.
func TestRelayFlags(t *testing.T) {
	if got, want := relayFlags([]string{"/dns4/a/tcp/1/p2p/Q", "/dns4/$(x)/tcp/1/p2p/Q"}), " --relay /dns4/a/tcp/1/p2p/Q --relay '/dns4/$(x)/tcp/1/p2p/Q'"; got != want {
		t.Error(got)
	}
}

func TestShow(t *testing.T) {
	for _, c := range []struct {
		value device.Value
		unit  string
		want  string
	}{
		{device.Value{}, "Cel", "-"}, {device.Bool(true), "", "on"}, {device.Bool(false), "", "off"}, {device.Text("open"), "", "open"},
		{device.Number(21.4567), "Cel", "21.46 °C"}, {device.Number(-0.0001), "Cel", "-0.0001 °C"}, {device.Number(0.0), "%", "0 %"}, {device.Number(101325.4), "Pa", "101325 Pa"},
		{device.Number(45.0), "deg", "45°"}, {device.Number(-3.0), "", "-3"}, {device.Number(0.94), "1", "0.94"}, {device.Number(3.3), "[unknown]", "3.3 [unknown]"},
		{device.Number(512.0), "By", "512 bytes"}, {device.Number(24773988352.0), "By", "23.1 GiB"}, {device.Number(3638.9), "s", "1 h"}, {device.Number(7260.0), "s", "2 h 1 min"}, {device.Number(2.5), "s", "2.5 s"},
	} {
		if got := show(c.value, c.unit); got != c.want {
			t.Errorf("show(%v, %q) = %q, want %q", c.value, c.unit, got, c.want)
		}
	}
}

func TestTimes(t *testing.T) {
	for seconds, want := range map[float64]string{
		0.02: "0.1 s", 1.499: "1.5 s", 4.998: "5 s", 5: "5 s", 59.2: "1 min", 60: "1 min", 89.9: "1 min 30 s", 600: "10 min", 5400: "1 h 30 min", 90000: "1 d 1 h",
	} {
		if got := span(seconds); got != want {
			t.Errorf("span(%v) = %q, want %q", seconds, got, want)
		}
	}
	for seconds, want := range map[float64]string{0.9: "now", 1: "1 s ago", 119.9: "119 s ago", 120: "2 min ago", 7200: "2 h ago", 172800: "2 d ago"} {
		if got := ago(seconds); got != want {
			t.Errorf("ago(%v) = %q, want %q", seconds, got, want)
		}
	}
}

// A site's texts must not move the cursor of the terminal that they are shown on.
func TestClean(t *testing.T) {
	for s, want := range map[string]string{
		"plain, 21 °C": "plain, 21 °C", "two\nlines\tand": "two lines and", "\x1b[2Jgone": "?[2Jgone", "\u009b2J": "?2J",
		"a\u202eb": "a?b", "bad \xff byte": "bad ? byte", "a\rb": "a?b", "a\u2028b": "a?b",
	} {
		if got := clean(s); got != want {
			t.Errorf("clean(%q) = %q, want %q", s, got, want)
		}
	}
}

// --json prints the same value, without characters that a terminal interprets.
func TestEscape(t *testing.T) {
	for value, want := range map[string]string{
		`{"a":"plain, 21 °C 🙂"}`: `{"a":"plain, 21 °C 🙂"}`, "\"\u009b2J\x7f\"": `"\u009b2J\u007f"`,
		"\"a\u202eb\u2028c\ufeff\"": `"a\u202eb\u2028c\ufeff"`, "\"\U000e0041\"": `"\udb40\udc41"`, `"\u001b"`: `"\u001b"`,
	} {
		got := string(escape([]byte(value)))
		var before, after any
		if got != want || json.Unmarshal([]byte(value), &before) != nil || json.Unmarshal([]byte(got), &after) != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("escape(%q) = %q, want %q", value, got, want)
		}
	}
}

func TestPad(t *testing.T) {
	if got := pad("°", 3) + pad("longer", 3); got != "°  longer" {
		t.Errorf("%q", got)
	}
}

// A command does not wait for an approval without limit.
func TestWaitsForApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &app{out: &output{Writer: io.Discard}, errs: io.Discard}
		s := &session{&peer.Connection{Client: client.New(undecided{}, "t", "1")}, a}
		begun := time.Now()
		_, err := s.call(t.Context(), "switch_output", []byte("{}"))
		if exitCode(err) != exitUnknown || time.Since(begun) > 5*time.Minute {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}

// A tool of an agent's own is called once, whatever becomes of the connection.
func TestCallsOnce(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		for tool, most := range map[string]int{"switch_output": 1 + maxRetries, "weather_mail": 1} {
			cut := new(cutting)
			a := &app{out: &output{Writer: io.Discard}, errs: io.Discard, data: dir}
			s := &session{&peer.Connection{Client: client.New(cut, "t", "1")}, a}
			if _, err := s.call(t.Context(), tool, []byte("{}")); err == nil || cut.calls != most || most == 1 && exitCode(err) != exitUnknown {
				t.Errorf("%s: %d calls: %v", tool, cut.calls, err)
			}
		}
	})
}

// cutting is a site whose connection ends in each call.
type cutting struct{ calls int }

func (c *cutting) Call(context.Context, rpc.Request, func(string, rpc.Raw)) (rpc.Raw, error) {
	c.calls++
	return rpc.Raw{}, io.ErrUnexpectedEOF
}

type undecided struct{}

func (undecided) Call(context.Context, rpc.Request, func(string, rpc.Raw)) (rpc.Raw, error) {
	return rpc.RawJSON([]byte(`{"resultType":"input_required","requestState":"x","_meta":{"agentsite/approval":"wait"}}`)), nil
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	table(&b, []string{"A", "EMPTY", "LONG HEAD", "C"}, [][]string{{"°°°", "", "x", ""}, {"y", "", "z", "end\x1b"}})
	if want := "A    LONG HEAD  C\n°°°  x\ny    z          end?\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// TestSetUnit: a level is set as read shows it, with its unit or without.
func TestSetUnit(t *testing.T) {
	p := point{Point: "house/vent", Kind: device.KindLevel, Unit: "%"}
	heat := point{Point: "house/heat", Kind: device.KindLevel, Unit: "Cel"}
	for _, tt := range []struct {
		p     point
		value string
		want  float64
		ok    bool
	}{{p, "50", 50, true}, {p, "50%", 50, true}, {p, "50 %", 50, true}, {heat, "20.5 °C", 20.5, true}, {heat, "20.5Cel", 20.5, true}, {heat, "20 %", 0, false}, {p, "%", 0, false}, {p, "50 % %", 0, false}} {
		r, err := tt.p.move(tt.value)
		if (err == nil) != tt.ok || tt.ok && r.Value.Number() != tt.want {
			t.Errorf("%q: %v, %v", tt.value, r.Value, err)
		}
	}
}

func TestExitCodes(t *testing.T) {
	a := &app{}
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("anything"), 1}, {usagef("words"), 2}, {a.unreached(context.DeadlineExceeded), 7}, {a.unreached(context.Canceled), 1},
		{&client.ToolError{Kind: "invalid"}, 2}, {&client.ToolError{Kind: "denied"}, 3}, {&client.ToolError{Kind: "unsafe"}, 4},
		{&client.ToolError{Kind: "busy"}, 5}, {&client.ToolError{Kind: "offline"}, 6}, {&client.ToolError{Kind: "unavailable"}, 6},
		{&client.ToolError{Kind: "expired"}, 7}, {&client.ToolError{Kind: "unknown_outcome"}, 7}, {&client.ToolError{Kind: "internal"}, 1},
		{&client.ToolError{Kind: "of another site"}, 1}, {&client.ToolError{}, 1},
		{&client.RequestError{Kind: "denied"}, 3}, {&client.RequestError{Kind: "busy"}, 5}, {&client.RequestError{Kind: "internal"}, 1}, {&client.RequestError{}, 1},
		{fmt.Errorf("more words: %w", &client.RequestError{Kind: "unavailable"}), 6},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%T %v: exit code %d, want %d", c.err, c.err, got, c.want)
		}
	}
}
