package main

import (
	"bytes"
	"strings"
	"testing"

	"agentsite/cmd/internal/peer"
	"agentsite/node/acts"
)

// TestFoundAsTheyCome: each site is printed when it is found, below one header.
func TestFoundAsTheyCome(t *testing.T) {
	var out bytes.Buffer
	p := &foundPrinter{app: &app{out: &output{Writer: &out}}}
	for i, name := range []string{"greenhouse", "a"} {
		p.print(peer.Found{Found: acts.Found{Name: name, DID: "did:key:z", URLs: []string{"https://192.0.2.1:8474/mcp"}}})
		if lines := strings.Count(out.String(), "\n"); lines != i+2 {
			t.Errorf("%d lines after %d sites", lines, i+1)
		}
	}
	lines := strings.Split(out.String(), "\n")
	for _, column := range []string{"YOU CALL IT", "KEY", "ADDRESSES"} {
		at := strings.Index(lines[0], column)
		for _, line := range lines[1:3] {
			if at < 0 || line[at-1] != ' ' || line[at] == ' ' {
				t.Errorf("%s does not stand over its column:\n%s", column, out.String())
			}
		}
	}
	out.Reset()
	p = &foundPrinter{app: &app{out: &output{Writer: &out}, json: true}}
	p.print(peer.Found{Found: acts.Found{Name: "b", DID: "did:key:z"}})
	if !strings.HasPrefix(out.String(), "{") || strings.Count(out.String(), "\n") != 1 {
		t.Error(out.String())
	}
}
