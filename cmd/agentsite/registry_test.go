package main

import (
	"fmt"
	"net/http/httptest"
	"sync"
	"time"

	"agentsite/transport/aios/aiostest"

	"github.com/rogpeppe/go-internal/testscript"
)

// registries are the AIOS registries of scripts, by their URLs.
var registries sync.Map

// registry starts an AIOS registry at $REGISTRY, gives it tasks, prints the first result of one when
// it has come, and says how often nodes reported: registry start, registry add ID AGENT MESSAGE,
// registry result ID, registry reports.
func registry(ts *testscript.TestScript, neg bool, args []string) {
	if !neg && len(args) == 1 && args[0] == "start" {
		r := new(aiostest.Registry)
		server := httptest.NewServer(r)
		registries.Store(server.URL, r)
		ts.Defer(server.Close)
		ts.Setenv("REGISTRY", server.URL)
		return
	}
	found, ok := registries.Load(ts.Getenv("REGISTRY"))
	if !ok {
		ts.Fatalf("registry start comes first")
	}
	r := found.(*aiostest.Registry)
	switch {
	case !neg && len(args) == 4 && args[0] == "add":
		r.Add(args[1], args[2], args[3])
	case !neg && len(args) == 2 && args[0] == "result":
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if all := r.Results(args[1]); len(all) > 0 {
				fmt.Fprintf(ts.Stdout(), "%s %s%s\n", all[0].Result.Status, all[0].Result.Error, all[0].Result.Result)
				return
			}
		}
		ts.Fatalf("no result of %s came in 20 s", args[1])
	case len(args) == 1 && args[0] == "reports":
		if (len(r.Nodes()) == 0) != neg {
			ts.Fatalf("nodes reported %d times", len(r.Nodes()))
		}
	default:
		ts.Fatalf("usage: registry start|add|result|reports")
	}
}
