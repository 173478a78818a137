// Command agentsite runs a physical AgentSite and is the command line for running sites.
//
// It parses flags and prints results. The site is in cmd/internal/site, the connection to other
// sites in cmd/internal/peer, and commands that need no site in cmd/internal/ops. docs/cli.md
// documents exit codes and --json.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version is set when a release is built: -ldflags '-X main.version=v1.2.3'.
var version = "dev"

func main() {
	code, first := runAsFirst()
	if !first {
		code = start()
	}
	os.Exit(code)
}

func start() int {
	// SIGHUP too: a closed terminal ends a site in order.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	a := &app{in: os.Stdin, out: &output{Writer: os.Stdout}, errs: os.Stderr}
	return a.execute(ctx, os.Args[1:])
}
