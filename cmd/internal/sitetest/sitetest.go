// Package sitetest starts a whole site inside a test's process. Tests only import it; it
// imports cmd/internal/site, node/devices for the guard and node/state for the data folder.
package sitetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"agentsite/cmd/internal/site"
	"agentsite/node/devices"
	"agentsite/node/state"
)

// RunGuard comes first in the TestMain of a package that starts sites. A site starts its
// guard as the same program once more: there, RunGuard runs the guard and ends the process.
func RunGuard() {
	if len(os.Args) != 4 || os.Args[2] != "--data" {
		return
	}
	folder, err := state.Folder(os.Args[3]), error(nil)
	switch os.Args[1] {
	case "guard":
		conn, connErr := devices.GuardConn()
		if err = connErr; err == nil {
			err = site.Guard(context.Background(), folder, conn, nil)
		}
	case "safe":
		_, err = site.Safe(context.Background(), folder)
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Site is a running site.
type Site struct {
	site.Started
	Folder state.Folder
	Token  string           // for HTTP
	Hangup chan<- os.Signal // each asks for a reload
	End    func() error     // ends the site, and returns what Run returned
}

// Start runs a site with a configuration, "" for the demonstration, and returns when it can
// be called. The end of the test ends it, and fails the test where it does not end well.
func Start(t testing.TB, yaml string) *Site {
	t.Helper()
	dir, err := os.MkdirTemp("", "site") // short enough for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("RUNTIME_DIRECTORY", dir)
	o := site.Options{Folder: state.Folder(filepath.Join(dir, "data")), Version: "test"}
	o.Listen.HTTP = "127.0.0.1:0"
	if yaml != "" {
		o.Config = filepath.Join(dir, "agentsite.yaml")
		if err := os.WriteFile(o.Config, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	started, ended := make(chan site.Started, 1), make(chan error, 1)
	o.OnStart = func(s site.Started) { started <- s }
	hangup := make(chan os.Signal)
	o.Hangup = hangup
	ctx, cancel := context.WithCancel(context.Background()) // t.Context ends before cleanups run
	go func() { ended <- site.Run(ctx, o) }()
	s := &Site{Folder: o.Folder, Hangup: hangup, End: sync.OnceValue(func() error { cancel(); return <-ended })}
	select {
	case s.Started = <-started:
	case err := <-ended:
		cancel()
		t.Fatal(errors.Join(errors.New("the site ended before it could be called"), err))
	}
	t.Cleanup(func() {
		if err := s.End(); err != nil {
			t.Error(err)
		}
	})
	token, err := os.ReadFile(o.Folder.Path(state.TokenFile))
	if err != nil {
		t.Fatal(err)
	}
	s.Token = strings.TrimSpace(string(token))
	return s
}
