// Command agentsite runs a physical AgentSite and speaks to one.
//
// It is words and tables: what it does is in cmd/internal/site, and what it shows
// comes from the site that it asks. docs/cli.md documents exit codes and --json.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version is set when a release is built: -ldflags '-X main.version=v1.2.3'.
var version = "dev"

func main() { os.Exit(start()) }

func start() int {
	// SIGHUP too: a terminal that closes ends a site in order.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	a := &app{in: os.Stdin, out: &output{Writer: os.Stdout}, errs: os.Stderr}
	return a.execute(ctx, os.Args[1:])
}
