package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"agentsite/agents"
	"agentsite/device"
)

// TestWatchForgets: a site that names other points in each snapshot takes no more memory for
// it, and a value that stays is printed once.
func TestWatchForgets(t *testing.T) {
	var out bytes.Buffer
	p := watchPrinter{app: &app{out: &output{Writer: &out}}, last: make(map[string]agents.Reading)}
	for i := range 9 {
		u := agents.Update{Offer: i > 0, Readings: []agents.Reading{
			{Point: "a/stays", Value: device.Number(1), Quality: device.Good}, {Point: fmt.Sprintf("a/p%d", i), Value: device.Number(2), Quality: device.Good},
		}}
		if err := p.print(u); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.last) != 2 || strings.Count(out.String(), "a/stays") != 1 {
		t.Errorf("%d points are kept after\n%s", len(p.last), &out)
	}
}
