package main

import (
	"runtime"
	"time"

	"agentsite/node/state"

	"github.com/spf13/cobra"
)

type versionResult struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	// Built is when its source was committed; the site's clock is never before.
	Built time.Time `json:"built,omitzero"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Args: noArgs,
		Short: "Print the version of this program",
		RunE:  func(*cobra.Command, []string) error { return a.printVersion() },
	}
}

func (a *app) printVersion() error {
	v := versionResult{version, runtime.Version(), runtime.GOOS, runtime.GOARCH, state.BuildTime()}
	return a.print(v, "agentsite %s (%s, %s/%s)", v.Version, v.Go, v.OS, v.Arch)
}
