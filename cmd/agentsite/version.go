package main

import (
	"runtime"

	"github.com/spf13/cobra"
)

type versionResult struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Args: noArgs,
		Short: "Print the version of this program",
		RunE: func(*cobra.Command, []string) error {
			v := versionResult{version, runtime.Version(), runtime.GOOS, runtime.GOARCH}
			return a.print(v, "agentsite %s (%s, %s/%s)", v.Version, v.Go, v.OS, v.Arch)
		},
	}
}
